#include "cli/adm_cluster.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "adm/file.h"
#include "cli/commands.h"
#include "cli/stopwatch.h"
#include "etcd/etcd.h"

namespace weft::cli {
namespace {

using adm::Setting;
using adm::Settings;

constexpr double kRetry = 1;  // seconds

// Keys that no program could take are left out, each with a sentence.
Settings settings_of(const etcd::Entries& entries, std::vector<std::string>& complaints) {
  Settings all;
  for (const etcd::Entry& e : entries.all) {
    auto one = adm::read_setting(e.key + "=" + e.value);
    if (!one) {
      complaints.push_back(fmt::format("etcd's key '{}': {}", e.key, one.error().message));
    } else if (!all.set(std::move(*one))) {
      complaints.push_back("etcd has more than 512 keys here; the others are left out");
      break;
    }
  }
  return all;
}

void print(const Settings& s, std::int64_t revision, bool as_json) {
  if (as_json) {
    nlohmann::json wanted = nlohmann::json::object();
    for (const Setting& one : s.all()) wanted[adm::name_of(one)] = one.value;
    fmt::print("{}\n", nlohmann::json{{"revision", revision}, {"settings", std::move(wanted)}}.dump());
  } else {
    fmt::print("revision {}\n", revision);
    for (const Setting& one : s.all()) fmt::print("  {}={}\n", adm::name_of(one), one.value);
  }
  std::cout.flush();
  (void)std::fflush(stdout);
}

// Each sentence once, for as long as it stays true.
class Complaints {
 public:
  void say(const std::vector<std::string>& sentences) {
    std::set<std::string> now(sentences.begin(), sentences.end());
    for (const std::string& s : now) {
      if (!said_.contains(s)) std::cerr << "weft: " << s << ".\n";
    }
    said_ = std::move(now);
  }

 private:
  std::set<std::string> said_;
};

int write(const ClusterOptions& options, const std::vector<etcd::Write>& writes) {
  auto cluster = etcd::Cluster::at(options.etcd, options.prefix);
  if (!cluster) return refuse(cluster.error());
  const auto revision = cluster->write(writes);
  if (!revision) return fault(revision.error());
  fmt::print("revision {}\n", *revision);
  return 0;
}

}  // namespace

int set_in_cluster(const ClusterOptions& options, const std::vector<Setting>& wanted) {
  std::vector<etcd::Write> writes;
  for (const Setting& s : wanted) writes.push_back({adm::name_of(s), std::to_string(s.value)});
  return write(options, writes);
}

int unset_in_cluster(const ClusterOptions& options, const std::vector<Setting>& unwanted) {
  auto cluster = etcd::Cluster::at(options.etcd, options.prefix);
  if (!cluster) return refuse(cluster.error());
  const auto there = cluster->read();
  if (!there) return fault(there.error());
  std::vector<etcd::Write> writes;
  for (const Setting& s : unwanted) {
    const std::string name = adm::name_of(s);
    bool found = false;
    for (const etcd::Entry& e : there->all) found = found || e.key == name;
    if (!found) return refuse({"'" + name + "' is not set; weft adm get lists what is"});
    writes.push_back({name, std::nullopt});
  }
  return write(options, writes);
}

int get_from_cluster(const ClusterOptions& options, bool as_json) {
  auto cluster = etcd::Cluster::at(options.etcd, options.prefix);
  if (!cluster) return refuse(cluster.error());
  const auto there = cluster->read();
  if (!there) return fault(there.error());
  std::vector<std::string> complaints;
  print(settings_of(*there, complaints), there->revision, as_json);
  Complaints().say(complaints);
  return 0;
}

int watch_cluster(const ClusterOptions& options, bool as_json, std::uint64_t times) {
  auto cluster = etcd::Cluster::at(options.etcd, options.prefix);
  if (!cluster) return refuse(cluster.error());
  Complaints complaints;
  std::string before;
  for (std::uint64_t told = 0;;) {
    const auto there = cluster->read();
    if (!there) {
      complaints.say({there.error().message});
      sleep_seconds(kRetry);
      continue;
    }
    std::vector<std::string> wrong;
    const Settings now = settings_of(*there, wrong);
    complaints.say(wrong);
    if (const std::string text = adm::text_of(now); text != before) {
      before = text;
      print(now, there->revision, as_json);
      if (++told == times || std::ferror(stdout) != 0) return 0;
    }
    cluster->wait(there->revision);
  }
}

int run_agent(const ClusterOptions& options) {
  const std::string path = adm::settings_path();
  if (path.empty())
    return refuse({"WEFT_PARAMETERS is 0, which means no file; unset it, or let it name the programs' file"});
  auto cluster = etcd::Cluster::at(options.etcd, options.prefix);
  if (!cluster) return refuse(cluster.error());
  const auto agency = adm::Agency::begin(path);
  if (!agency) return refuse(agency.error());
  Complaints complaints;
  bool lost = false;
  bool began = false;
  for (;;) {
    const auto there = cluster->read();
    if (!there) {
      if (!lost) std::cerr << "weft: " << there.error().message << "; programs keep what they have.\n";
      lost = true;
      sleep_seconds(kRetry);
      continue;
    }
    if (lost) std::cerr << "weft: etcd at " << cluster->name() << " answers again.\n";
    lost = false;
    std::vector<std::string> wrong;
    const Settings wanted = settings_of(*there, wrong);
    const auto before = adm::load(path);
    if (!before || before->all() != wanted.all()) {
      const auto done = adm::change(path, [&](Settings& s) -> Result<void> {
        const std::uint64_t version = s.version;
        s = wanted;
        s.version = version;
        return {};
      });
      if (!done) wrong.push_back(done.error().message);
      if (done) fmt::print("version {} from revision {}\n", done->version, there->revision);
    }
    if (!began) fmt::print("{} follows etcd at {}\n", path, cluster->name());
    began = true;
    (void)std::fflush(stdout);
    complaints.say(wrong);
    cluster->wait(there->revision);
  }
}

}  // namespace weft::cli
