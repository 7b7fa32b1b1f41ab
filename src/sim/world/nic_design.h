// NIC designs as TOML (docs/guide/nic-models.md): the built-in ones, which the program carries, and files.
#pragma once
#include <span>
#include <string>

#include "core/base/result.h"
#include "sim/nic/design.h"

namespace weft::sim {

struct DesignRow {
  const char* name;
  const char* text;  // TOML
};
// data/nics, in the order of their names.
std::span<const DesignRow> design_rows();

// `name` is what errors call the text. `changes`: "scheduler.wqes=4, pcie.rate=64Gbps", applied on top.
Result<Design> parse_design(const std::string& text, const std::string& name, const std::string& changes);

// The TOML of one of these.
Result<std::string> design_text(const std::string& name, const std::string& folder);

// A built-in design, or the file of that name; a relative one lies in `folder`.
Result<Design> design_named(const std::string& name, const std::string& folder, const std::string& changes);

}  // namespace weft::sim
