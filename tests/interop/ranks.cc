// A program of MPI's, for the transports below it: a sum over all ranks, and a large message from each to the
// next, every byte checked.
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

constexpr int kNumbers = 100'000;
constexpr int kBytes = 4 << 20;

char byte_of(int rank, int i) { return static_cast<char>(rank * 31 + i * 7); }

bool sums_agree(int rank, int ranks) {
  std::vector<int> mine(kNumbers, rank + 1);
  std::vector<int> sum(kNumbers);
  bool good = true;
  for (int turn = 0; turn < 10; ++turn) {
    MPI_Allreduce(mine.data(), sum.data(), kNumbers, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (const int s : sum) good = good && s == ranks * (ranks + 1) / 2;
  }
  return good;
}

bool ring_agrees(int rank, int ranks) {
  std::vector<char> out(kBytes);
  std::vector<char> in(kBytes);
  for (int i = 0; i < kBytes; ++i) out[static_cast<std::size_t>(i)] = byte_of(rank, i);
  const int before = (rank + ranks - 1) % ranks;
  MPI_Sendrecv(out.data(), kBytes, MPI_CHAR, (rank + 1) % ranks, 7, in.data(), kBytes, MPI_CHAR, before, 7,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < kBytes; ++i) {
    if (in[static_cast<std::size_t>(i)] != byte_of(before, i)) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int good = sums_agree(rank, ranks) && ring_agrees(rank, ranks) ? 1 : 0;
  int all = 0;
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && all == 1) std::printf("%d ranks agree\n", ranks);
  MPI_Finalize();
  return all == 1 ? 0 : 1;
}
