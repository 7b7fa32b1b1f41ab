#include "cli/mpi/ranks.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>

namespace weft::cli {
namespace {

constexpr int kPiece = 1;  // a message's tag: a piece of work,
constexpr int kDone = 2;   // what became of it,
constexpr int kHome = 3;   // or that there is no more
constexpr useconds_t kNapMicroseconds = 5000;

void send(int to, int tag, const std::string& text) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, tag, MPI_COMM_WORLD);
}

struct Message {
  int from = -1;
  int tag = 0;
  std::string text;
};

// The next message, if there is one.
bool receive(Message& m) {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return false;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  m.from = status.MPI_SOURCE;
  m.tag = status.MPI_TAG;
  m.text.resize(static_cast<std::size_t>(size));
  MPI_Recv(m.text.data(), size, MPI_CHAR, m.from, m.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return true;
}

std::string pack(const lab::ChildResult& o) {
  return fmt::format("{} {}\n{}{}", o.memory, o.died.size(), o.died, o.text);
}

lab::ChildResult unpack(const std::string& text) {
  char* end = nullptr;
  lab::ChildResult o;
  o.memory = std::strtoull(text.c_str(), &end, 10);
  const auto died = static_cast<std::size_t>(std::strtoull(end, &end, 10));
  const auto begin = static_cast<std::size_t>(end + 1 - text.c_str());
  o.died = text.substr(begin, died);
  o.text = text.substr(begin + died);
  return o;
}

}  // namespace

Ranks::Ranks(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Ranks::~Ranks() {
  for (int r = 1; rank_ == 0 && r < size_; ++r) send(r, kHome, {});
  MPI_Finalize();
}

lab::PoolEnd Ranks::run(const std::vector<std::string>& pieces, const lab::PoolCalls& calls) {
  if (size_ == 1) return lab::run_pool(pieces, 1, calls);
  std::vector<std::size_t> doing(static_cast<std::size_t>(size_));
  std::size_t next = 0;
  std::size_t out = 0;
  bool more = true;
  const auto give = [&](int rank) {
    if (!more || next == pieces.size()) return;
    doing[static_cast<std::size_t>(rank)] = next;
    send(rank, kPiece, pieces[next++]);
    ++out;
  };
  for (int r = 1; r < size_; ++r) give(r);
  Message m;
  while (out > 0) {
    if (!receive(m)) {
      usleep(kNapMicroseconds);
      continue;
    }
    --out;
    more = calls.done(doing[static_cast<std::size_t>(m.from)], unpack(m.text)) && more;
    calls.turn();
    give(m.from);
  }
  return more ? lab::PoolEnd::kAll : lab::PoolEnd::kStopped;
}

void Ranks::serve(const std::function<std::string(const std::string&)>& work) {
  Message m;
  while (m.tag != kHome) {
    if (!receive(m)) {
      usleep(kNapMicroseconds);
      continue;
    }
    if (m.tag != kPiece) continue;
    lab::ChildResult outcome;
    lab::PoolCalls calls;
    calls.work = work;
    calls.done = [&](std::size_t, const lab::ChildResult& o) {
      outcome = o;
      return true;
    };
    calls.turn = [] {};
    if (lab::run_pool({m.text}, 1, calls) == lab::PoolEnd::kInterrupted) MPI_Abort(MPI_COMM_WORLD, 1);
    send(0, kDone, pack(outcome));
  }
}

}  // namespace weft::cli
