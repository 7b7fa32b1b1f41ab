// weft adm over a cluster: parameters are keys of etcd, PREFIX + NAME or PREFIX + PROGRAM/NAME, with the
// value as people write it. An agent for each host brings them into the file that the host's programs watch.
#pragma once
#include <string>
#include <vector>

#include "adm/settings.h"
#include "core/base/result.h"

namespace weft::cli {

struct ClusterOptions {
  std::vector<std::string> etcd;  // empty: this host alone
  std::string prefix = "weft/parameters/";
};

// Each prints and answers the exit code.
int set_in_cluster(const ClusterOptions& options, const std::vector<adm::Setting>& wanted);
int unset_in_cluster(const ClusterOptions& options, const std::vector<adm::Setting>& unwanted);
int get_from_cluster(const ClusterOptions& options, bool as_json);
int watch_cluster(const ClusterOptions& options, bool as_json, std::uint64_t times);

// Until it is interrupted. When etcd is lost, the file stays as it is, and so do the programs.
int run_agent(const ClusterOptions& options);

}  // namespace weft::cli
