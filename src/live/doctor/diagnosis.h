// What of a host's facts matters to its soft NIC, in sentences: what was found, what to change, and what it
// costs not to.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "live/doctor/host.h"

namespace weft::live {

enum class Health : std::uint8_t {
  kGood,
  kCosts,   // it works, slower than it could
  kBroken,  // it does not work
};

struct Symptom {
  std::string what;  // two or three words
  Health health = Health::kGood;
  std::string found;
  std::string change;  // what to do; empty with kGood
  std::string cost;    // of not doing it; empty with kGood
};

std::vector<Symptom> diagnose(const Host& host);
Health worst(const std::vector<Symptom>& symptoms);

}  // namespace weft::live
