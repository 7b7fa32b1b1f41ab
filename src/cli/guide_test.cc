// docs/guide/simulating.md is followed by people who know nothing else: what it tells them to write must
// work, and it must explain every setting there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "sim/world/scenario.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string guide() {
  std::ifstream file(WEFT_SOURCE_DIR "/docs/guide/simulating.md");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Blocks whose first line is a comment that opens with a file's name.
std::map<std::string, std::string> files_of_the_guide() {
  std::map<std::string, std::string> files;
  std::istringstream lines(guide());
  std::string line;
  std::string* open = nullptr;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) {
      inside = !inside;
      open = nullptr;
      if (inside && std::getline(lines, line) && line.starts_with("# ")) {
        const std::string name = line.substr(2, line.find_first_of(": ", 2) - 2);
        if (name.find('.') != std::string::npos) open = &files[name];
      }
    }
    if (open != nullptr) *open += line + "\n";
  }
  return files;
}

// `name`, `name = …` or **name**.
bool explains(const std::string& text, const std::string& name) {
  for (const char* mark : {"`", "**"}) {
    for (const char* end : {mark, " = "}) {
      if (text.find(mark + name + end) != std::string::npos) return true;
    }
  }
  return false;
}

// What a refusal names: "… there is no such setting here; there are a, b, c."
std::vector<std::string> settings_of(const std::string& table) {
  const std::string flow = "[[flow]]\nfrom = 0\nto = 1\n";
  const bool list = table == "traffic" || table == "failure";
  const std::string text = flow + (list ? "[[" + table + "]]\n" : "");
  const std::vector<std::string> change{(table.empty() ? "" : table + ".") + "nonsense=1"};
  const auto s = sim::parse_scenario(text, "x", change);
  const std::string said = s ? "" : s.error().message;
  const std::string before = "there are ";
  const std::size_t at = said.find(before);
  std::vector<std::string> names;
  if (at == std::string::npos) return names;
  std::istringstream words(said.substr(at + before.size()));
  for (std::string w; words >> w;) names.push_back(w.substr(0, w.find(',')));
  return names;
}

TEST(Guide, ExplainsEverySetting) {
  const std::string text = guide();
  for (const char* table : {"", "measure", "topology", "network", "switch", "transport", "nic", "tcp", "flow",
                            "traffic", "failure"}) {
    const std::vector<std::string> names = settings_of(table);
    EXPECT_GE(names.size(), 2U) << table;
    for (const std::string& name : names) {
      EXPECT_TRUE(explains(text, name)) << table << "." << name;
    }
  }
}

TEST(Guide, WhatItTellsPeopleToWriteWorks) {
  const fs::path folder = fs::path(::testing::TempDir()) / "weft-guide-test";
  fs::create_directories(folder / "scenarios");
  const auto files = files_of_the_guide();
  for (const char* name :
       {"racks.txt", "sizes.txt", "trace.txt", "racks.toml", "slowdown.gp", "delay-or-marks.toml"})
    ASSERT_TRUE(files.contains(name)) << name;
  const auto write = [](const fs::path& path, const std::string& text) { std::ofstream(path) << text; };
  for (const char* name : {"racks.txt", "sizes.txt", "trace.txt", "racks.toml"})
    write(folder / "scenarios" / name, files.at(name));
  // The controller that readers write is theirs; the nearest of ours stands in for it.
  std::string experiment = files.at("delay-or-marks.toml");
  const std::string theirs = "transport.controller=delay";
  ASSERT_THAT(experiment, HasSubstr(theirs));
  experiment.replace(experiment.find(theirs), theirs.size(), "transport.controller=aimd");
  write(folder / "delay-or-marks.toml", experiment);

  const auto answer = [](const std::vector<std::string>& args) {
    std::ostringstream out;
    std::ostringstream err;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = run(args, out, err);
    const std::string said = ::testing::internal::GetCapturedStdout() + out.str();
    const std::string complaint = ::testing::internal::GetCapturedStderr() + err.str();
    EXPECT_EQ(code, 0) << said << complaint;
    return said;
  };
  // The output that the guide shows is of the whole run; a short one has the same network.
  const std::string ran =
      answer({"sim", (folder / "scenarios/racks.toml").string(), "--set", "traffic.flows=100"});
  const std::string network = ran.substr(0, ran.find("\n\n"));
  EXPECT_THAT(network, HasSubstr("8 hosts, 4 switches"));
  EXPECT_THAT(guide(), HasSubstr(network));
  EXPECT_THAT(answer({"lab", "list", "--dir", folder.string()}), HasSubstr("delay-or-marks"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace weft::cli
