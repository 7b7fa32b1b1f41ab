// A folder of experiments for tests: two hosts, three variants, an axis, a fraction of a second in all.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weft::lab {

class TestFolder {
 public:
  explicit TestFolder(const std::string& where)
      : path_(std::filesystem::path(where) / ("weft-lab-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    write("scenarios/pair.toml",
          "hosts = 2\n[network]\nrate = \"100Gbps\"\nloss = \"1%\"\n[transport]\nmode = \"irn\"\n"
          "[[flow]]\ncount = 50\ndepth = 4\n");
    write("families/pairs.toml", kFamily);
    write("lossy.toml", std::string(kHead) + kClaim);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::trunc) << text;
  }
  std::string path() const { return path_; }
  std::string file(const std::string& name) const { return path_ / name; }

  static constexpr const char* kFamily =
      "base = 'pair.toml'\n"
      "[size.quick]\nseeds = 3\nset = ['flow.count=20']\n[size.decide]\nseeds = 3\n[size.full]\nseeds = 4\n"
      "[[metric]]\nname = 'goodput'\nvalue = 'flows.0.goodput_gbps'\nunit = 'Gb/s'\n"
      "[[metric]]\nname = 'again'\nvalue = 'totals.retransmitted / totals.packets_sent'\n"
      "[[variant]]\nname = 'irn'\n"
      "[[variant]]\nname = 'roce'\nset = ['transport.mode=roce']\n";
  static constexpr const char* kHead =
      "title = 'Loss on a link'\nfamily = 'pairs'\nvariants = ['irn', 'roce']\n"
      "[[axis]]\nname = 'loss'\n[[axis.point]]\nlabel = '1%'\nset = ['network.loss=1%']\n"
      "[[axis.point]]\nlabel = '5%'\nset = ['network.loss=5%']\n"
      "[[plot]]\nname = 'goodput'\nmetrics = ['goodput']\nalong = 'loss'\n";
  static constexpr const char* kClaim =
      "[[claim]]\nid = 'better'\nstatement = 'irn bears loss better'\npaper = 'better'\n"
      "reproduced = '> 1'\ntrend = '> 1'\n[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\nover = 'roce'\n"
      "reduce = 'mean'\nat = { loss = '5%' }\n";

 private:
  std::filesystem::path path_;
};

}  // namespace weft::lab
