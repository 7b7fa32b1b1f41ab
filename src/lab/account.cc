#include "lab/account.h"

#include <fmt/format.h>

#include <charconv>

#include "account/quantities.h"
#include "lab/nic_account.h"
#include "lab/wan_account.h"
#include "lab/xrdma_account.h"

namespace weft::lab {
namespace {

// Computed where more than arithmetic is at hand.
constexpr std::span<const ComputedQuantity> (*kElsewhere[])() = {nic_quantities, wan_quantities,
                                                                 xrdma_quantities};

struct Quantity {
  std::string unit;
  std::string text;
  std::vector<ComputedFigure> figures;
};

Result<Quantity> quantity_of(const std::string& id) {
  if (const account::Quantity* q = account::find_quantity(id.c_str()); q != nullptr) {
    Quantity all{q->unit, q->text, {}};
    for (const account::Figure& f : q->figures()) all.figures.push_back({f.what, f.value});
    return all;
  }
  for (const auto quantities : kElsewhere) {
    for (const ComputedQuantity& q : quantities()) {
      if (id != q.id) continue;
      auto figures = q.figures();
      if (!figures) return tl::unexpected(figures.error());
      return Quantity{q.unit, q.text, std::move(*figures)};
    }
  }
  std::string all;
  for (const std::string& name : account_quantities()) all += (all.empty() ? "" : ", ") + name;
  return fail(fmt::format("there is no quantity '{}'; there are {}", id, all));
}

}  // namespace

std::vector<std::string> account_quantities() {
  std::vector<std::string> all;
  for (const account::Quantity& q : account::quantities()) all.emplace_back(q.id);
  for (const auto quantities : kElsewhere) {
    for (const ComputedQuantity& q : quantities()) all.emplace_back(q.id);
  }
  return all;
}

Result<Computed> account_quantity(const std::string& name) {
  const std::size_t dot = name.find('.');
  const std::string id = name.substr(0, dot);
  const auto quantity = quantity_of(id);
  if (!quantity) return tl::unexpected(quantity.error());
  std::size_t which = 0;
  const auto& figures = quantity->figures;
  if (dot != std::string::npos) {
    const char* end = name.data() + name.size();
    const auto [read, error] = std::from_chars(name.data() + dot + 1, end, which);
    if (error != std::errc() || read != end) which = figures.size();
  }
  if (which >= figures.size())
    return fail(fmt::format("quantity '{}' has figures {}.0 to {}.{}, no '{}'", id, id, id,
                            figures.size() - 1, name));
  return Computed{figures[which].value, quantity->unit,
                  fmt::format("{}: {}", quantity->text, figures[which].what)};
}

}  // namespace weft::lab
