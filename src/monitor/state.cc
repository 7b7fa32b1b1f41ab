#include "monitor/state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace weft::monitor {
namespace {

using nlohmann::json;
using page::ReadPage;
using page::ReadTable;
using page::Sort;

json to_json(const ReadTable& t) {
  json rows = json::array();
  for (const auto& cells : t.rows) {
    json row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const page::ReadColumn& c = t.columns[i];
      switch (c.sort) {
        case Sort::kNanos:
        case Sort::kMoment:
          row[c.name + "_ns"] = cells[i];
          break;
        case Sort::kAddress:
        case Sort::kWord:
          row[c.name] = text_of(t, cells, i);
          break;
        case Sort::kPrefix:
          break;  // the next cell's
        default:
          row[c.name] = cells[i];
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string state_json(const page::Found& found, std::uint64_t now, bool pretty) {
  json all = {
      {"processes", json::array()}, {"stale_removed", found.removed}, {"unreadable", found.forbidden}};
  for (const ReadPage& p : found.pages) {
    const double silent =
        p.updated == 0 || now < p.updated ? 0.0 : static_cast<double>(now - p.updated) / 1e9;
    json one = {{"pid", p.pid},
                {"command", p.command},
                {"kind", p.kind},
                {"title", p.title},
                {"state", std::string(1, p.state)},
                {"silent_seconds", silent}};
    for (const ReadTable& t : p.tables) one[t.name] = to_json(t);
    all["processes"].push_back(std::move(one));
  }
  return all.dump(pretty ? 2 : -1, ' ', false, json::error_handler_t::replace);
}

std::vector<Slow> slow_lines(const page::Found& found, std::uint64_t now, std::int64_t now_ms) {
  std::vector<Slow> all;
  for (const ReadPage& p : found.pages) {
    const ReadTable* const t = p.table("slow");
    if (t == nullptr) continue;
    const int at = t->column("at");
    const int place = t->column("place");
    const int took = t->column("took");
    const int number = t->column("number");
    if (at < 0 || place < 0 || took < 0 || number < 0) continue;
    for (const auto& row : t->rows) {
      const auto cell = [&](int column) { return row[static_cast<std::size_t>(column)]; };
      const std::uint64_t age = now > cell(at) ? now - cell(at) : 0;
      all.push_back({now_ms - static_cast<std::int64_t>(age / 1'000'000), p.command, p.pid,
                     page::text_of(Sort::kWord, cell(place)), cell(took),
                     fmt::format("{} {} {} {}", p.path, p.pid, cell(number), cell(at))});
    }
  }
  return all;
}

}  // namespace weft::monitor
