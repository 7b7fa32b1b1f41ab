#include "record/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <system_error>

#include "record/statement.h"

namespace weft::record {
namespace {

constexpr int kFormat = 1;  // of the tables below
constexpr int kPatienceMs = 20'000;

constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS run (
    key TEXT PRIMARY KEY, simulator TEXT NOT NULL, version TEXT NOT NULL, seed INTEGER NOT NULL,
    configuration TEXT NOT NULL, result TEXT NOT NULL, fault TEXT NOT NULL, wall_seconds REAL NOT NULL,
    memory_bytes INTEGER NOT NULL, recorded TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS cell (
    experiment TEXT NOT NULL, size TEXT NOT NULL, variant TEXT NOT NULL, point TEXT NOT NULL,
    seed INTEGER NOT NULL, simulator TEXT NOT NULL, key TEXT NOT NULL, recorded TEXT NOT NULL,
    PRIMARY KEY (experiment, size, variant, point, seed, simulator));
)";

}  // namespace

struct Store::Database {
  sqlite3* handle = nullptr;
  std::string file;

  ~Database() { sqlite3_close(handle); }

  tl::unexpected<Error> wrong() const {
    return fail(fmt::format("run record '{}': {}", file, sqlite3_errmsg(handle)));
  }
  Result<void> execute(const char* sql) const {
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return wrong();
    return {};
  }
};

namespace {}  // namespace

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Result<Store> Store::open(const std::string& file) { return open(file, true); }
Result<Store> Store::open_existing(const std::string& file) { return open(file, false); }

Result<Store> Store::open(const std::string& file, bool create) {
  std::error_code none;
  if (!create && !std::filesystem::exists(file, none))
    return fail(fmt::format("there is no run record '{}'; weft lab run, and weft sim --db, write one", file));
  auto db = std::make_unique<Database>();
  db->file = file;
  const int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
  if (sqlite3_open_v2(file.c_str(), &db->handle, flags, nullptr) != SQLITE_OK)
    return fail(fmt::format("run record '{}' cannot be opened: {}", file, sqlite3_errmsg(db->handle)));
  sqlite3_busy_timeout(db->handle, kPatienceMs);
  int format = 0;
  {
    Statement ask(db->handle, "PRAGMA user_version");
    if (ask.step() != SQLITE_ROW) return db->wrong();
    format = static_cast<int>(ask.count(0));
  }
  if (format != 0 && format != kFormat)
    return fail(fmt::format("run record '{}' has format {}; this program knows {}", file, format, kFormat));
  if (const auto ok = db->execute(kTables); !ok) return tl::unexpected(ok.error());
  if (const auto ok = db->execute("PRAGMA user_version = 1"); format == 0 && !ok)
    return tl::unexpected(ok.error());
  return Store(std::move(db));
}

Result<void> Store::add(const Run& r) {
  Statement s(database_->handle,
              "INSERT OR REPLACE INTO run VALUES (?,?,?,?,?,?,?,?,?,strftime('%Y-%m-%dT%H:%M:%SZ','now'))");
  s.bind(r.key).bind(r.simulator).bind(r.version).bind(r.seed).bind(r.configuration).bind(r.result);
  s.bind(r.fault).bind(r.wall_seconds).bind(r.memory_bytes);
  if (s.step() != SQLITE_DONE) return database_->wrong();
  return {};
}

Result<std::optional<Run>> Store::find(const std::string& key) const {
  Statement s(database_->handle,
              "SELECT simulator,version,seed,configuration,result,fault,wall_seconds,memory_bytes FROM run "
              "WHERE key=?");
  s.bind(key);
  const int step = s.step();
  if (step == SQLITE_DONE) return std::optional<Run>();
  if (step != SQLITE_ROW) return database_->wrong();
  return Run{key, s.text(0), s.text(1), s.count(2), s.text(3), s.text(4), s.text(5), s.real(6), s.count(7)};
}

Result<void> Store::add(const std::vector<Cell>& cells) {
  if (const auto ok = database_->execute("BEGIN IMMEDIATE"); !ok) return ok;
  for (const Cell& c : cells) {
    Statement s(database_->handle,
                "INSERT OR REPLACE INTO cell VALUES (?,?,?,?,?,?,?,strftime('%Y-%m-%dT%H:%M:%SZ','now'))");
    s.bind(c.experiment)
        .bind(c.size)
        .bind(c.variant)
        .bind(c.point)
        .bind(c.seed)
        .bind(c.simulator)
        .bind(c.key);
    if (s.step() == SQLITE_DONE) continue;
    const auto error = database_->wrong();
    (void)database_->execute("ROLLBACK");
    return error;
  }
  return database_->execute("COMMIT");
}

Result<std::vector<Cell>> Store::cells(const std::string& experiment) const {
  Statement s(database_->handle,
              "SELECT size,variant,point,seed,simulator,key FROM cell JOIN (SELECT simulator AS which, "
              "MAX(rowid) AS last FROM cell WHERE experiment=?1 GROUP BY simulator) ON which=simulator "
              "WHERE experiment=?1 ORDER BY last DESC, cell.rowid");
  s.bind(experiment);
  std::vector<Cell> all;
  while (true) {
    const int step = s.step();
    if (step == SQLITE_DONE) return all;
    if (step != SQLITE_ROW) return database_->wrong();
    all.push_back({experiment, s.text(0), s.text(1), s.text(2), s.count(3), s.text(4), s.text(5)});
  }
}

Result<std::uint64_t> Store::runs() const {
  Statement s(database_->handle, "SELECT COUNT(*) FROM run");
  if (s.step() != SQLITE_ROW) return database_->wrong();
  return s.count(0);
}

std::string digest(std::string_view text) {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kPrime = (Wide{1} << 88U) + 0x13BU;
  Wide hash = (Wide{0x6c62272e07bb0142U} << 64U) + 0x62b821756295c58dU;
  for (const char c : text) {
    hash ^= static_cast<std::uint8_t>(c);
    hash *= kPrime;
  }
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(hash >> 64U),
                     static_cast<std::uint64_t>(hash));
}

}  // namespace weft::record
