#include "monitor/history.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <optional>

#include "record/statement.h"

namespace weft::monitor {
namespace {

using record::Statement;

constexpr int kFormat = 1;  // of the tables below
constexpr int kPatienceMs = 5000;
constexpr std::uint64_t kForgetEvery = 64;  // moments; names without samples go then, and at the beginning

constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS series (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  CREATE TABLE IF NOT EXISTS sample (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
    series INTEGER NOT NULL, value REAL NOT NULL);
  CREATE INDEX IF NOT EXISTS sample_at ON sample (series, at);
  CREATE INDEX IF NOT EXISTS sample_age ON sample (at);
  CREATE TABLE IF NOT EXISTS slow (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
    program TEXT NOT NULL, process INTEGER NOT NULL, what TEXT NOT NULL, took_ns INTEGER NOT NULL,
    seen TEXT NOT NULL UNIQUE);
)";
// Names of which nothing is left: interfaces and programs come and go over the years.
constexpr const char* kForget =
    "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM sample WHERE sample.series = series.number)";

std::optional<std::int64_t> format_of(sqlite3* db) {
  Statement format(db, "PRAGMA user_version");
  if (format.step() != SQLITE_ROW) return std::nullopt;
  return format.integer(0);
}

}  // namespace

struct History::Database {
  sqlite3* handle = nullptr;
  std::string file;
  Keep keep;
  std::uint64_t moments = 0;

  ~Database() { sqlite3_close(handle); }
  tl::unexpected<Error> wrong() const {
    return fail(fmt::format("the history '{}': {}", file, sqlite3_errmsg(handle)));
  }
  bool execute(const char* sql) const {
    return sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  bool write(std::int64_t at_ms, const Metrics& metrics, const std::vector<Slow>& slow) const;
  bool forget(std::int64_t at_ms) const;
};

History::History(std::unique_ptr<Database> database) : database_(std::move(database)) {}
History::~History() = default;

Result<std::unique_ptr<History>> History::open(const std::string& file, const Keep& keep) {
  auto db = std::make_unique<Database>();
  db->file = file;
  db->keep = keep;
  if (sqlite3_open(file.c_str(), &db->handle) != SQLITE_OK) return db->wrong();
  sqlite3_busy_timeout(db->handle, kPatienceMs);
  const auto there = format_of(db->handle);
  if (!there) return db->wrong();
  if (*there != 0 && *there != kFormat)
    return fail(fmt::format("the history '{}' has format {}, and this weft knows {}: name another file", file,
                            *there, kFormat));
  // With a journal beside the file readers wait for nobody, and what is lost with the power is the last rows.
  if (!db->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL") || !db->execute(kTables) ||
      !db->execute(kForget) || !db->execute(fmt::format("PRAGMA user_version = {}", kFormat).c_str()))
    return db->wrong();
  return std::unique_ptr<History>(new History(std::move(db)));
}

bool History::Database::write(std::int64_t at_ms, const Metrics& metrics,
                              const std::vector<Slow>& slow) const {
  Statement name(handle, "INSERT OR IGNORE INTO series (name) VALUES (?)");
  Statement sample(handle,
                   "INSERT INTO sample (at, series, value) SELECT ?, number, ? FROM series WHERE name = ?");
  for (const Family& f : metrics.families()) {
    for (const Value& v : f.values) {
      const std::string series = series_of(f, v);
      if (name.bind(series).step() != SQLITE_DONE) return false;
      if (sample.bind(at_ms).bind(v.value).bind(series).step() != SQLITE_DONE) return false;
      name.again();
      sample.again();
    }
  }
  Statement line(
      handle,
      "INSERT OR IGNORE INTO slow (at, program, process, what, took_ns, seen) VALUES (?, ?, ?, ?, ?, ?)");
  for (const Slow& s : slow) {
    line.bind(s.at_ms).bind(s.program).bind(static_cast<std::int64_t>(s.pid)).bind(s.what);
    if (line.bind(static_cast<std::int64_t>(s.took_ns)).bind(s.seen).step() != SQLITE_DONE) return false;
    line.again();
  }
  return true;
}

// Numbers of rows only grow and the oldest go, so that the newest number says how many there are at most.
bool History::Database::forget(std::int64_t at_ms) const {
  const auto rows = static_cast<std::int64_t>(keep.rows);
  Statement many(handle, "DELETE FROM sample WHERE number <= (SELECT max(number) FROM sample) - ?");
  Statement old(handle, "DELETE FROM sample WHERE at < ?");
  Statement slow(handle, "DELETE FROM slow WHERE number <= (SELECT max(number) FROM slow) - ? OR at < ?");
  const std::int64_t oldest = at_ms - static_cast<std::int64_t>(keep.seconds) * 1000;
  return many.bind(rows).step() == SQLITE_DONE && old.bind(oldest).step() == SQLITE_DONE &&
         slow.bind(static_cast<std::int64_t>(kMostSlow)).bind(oldest).step() == SQLITE_DONE;
}

Result<void> History::add(std::int64_t at_ms, const Metrics& metrics, const std::vector<Slow>& slow) {
  if (!database_->execute("BEGIN IMMEDIATE")) return database_->wrong();
  const bool names = ++database_->moments % kForgetEvery == 0;
  if (database_->write(at_ms, metrics, slow) && database_->forget(at_ms) &&
      (!names || database_->execute(kForget)) && database_->execute("COMMIT"))
    return {};
  const auto why = database_->wrong();
  database_->execute("ROLLBACK");
  return why;
}

Result<std::vector<Sample>> History::samples(const std::string& series, std::int64_t since_ms) const {
  Statement s(
      database_->handle,
      "SELECT at, value FROM sample WHERE series = (SELECT number FROM series WHERE name = ?) AND at >= ? "
      "ORDER BY at DESC LIMIT ?");
  s.bind(series).bind(since_ms).bind(static_cast<std::int64_t>(kMostAnswers));
  std::vector<Sample> all;
  int answer = s.step();
  for (; answer == SQLITE_ROW; answer = s.step()) all.push_back({s.integer(0), s.real(1)});
  if (answer != SQLITE_DONE) return database_->wrong();
  std::reverse(all.begin(), all.end());
  return all;
}

Result<std::vector<Slow>> History::slow(std::int64_t since_ms) const {
  Statement s(
      database_->handle,
      "SELECT at, program, process, what, took_ns, seen FROM slow WHERE at >= ? ORDER BY at DESC LIMIT ?");
  s.bind(since_ms).bind(static_cast<std::int64_t>(kMostAnswers));
  std::vector<Slow> all;
  int answer = s.step();
  for (; answer == SQLITE_ROW; answer = s.step())
    all.push_back({s.integer(0), s.text(1), static_cast<std::uint64_t>(s.integer(2)), s.text(3),
                   static_cast<std::uint64_t>(s.integer(4)), s.text(5)});
  if (answer != SQLITE_DONE) return database_->wrong();
  std::reverse(all.begin(), all.end());
  return all;
}

Result<std::vector<std::string>> History::series() const {
  Statement s(database_->handle, "SELECT name FROM series ORDER BY name LIMIT ?");
  s.bind(static_cast<std::int64_t>(kMostAnswers));
  std::vector<std::string> all;
  int answer = s.step();
  for (; answer == SQLITE_ROW; answer = s.step()) all.push_back(s.text(0));
  if (answer != SQLITE_DONE) return database_->wrong();
  return all;
}

Result<std::uint64_t> History::rows() const {
  Statement s(database_->handle, "SELECT count(*) FROM sample");
  if (s.step() != SQLITE_ROW) return database_->wrong();
  return static_cast<std::uint64_t>(s.integer(0));
}

}  // namespace weft::monitor
