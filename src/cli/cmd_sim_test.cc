// weft sim from outside: what it lists, writes and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/answer.h"
#include "core/transport/cc/controller.h"
#include "sim/fabric/topology.h"
#include "sim/traffic/pattern.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;

Answer sim(std::vector<std::string> args) {
  args.insert(args.begin(), "sim");
  return answer_to(std::move(args));
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const std::string kExample = WEFT_SOURCE_DIR "/examples/irn-default.toml";

TEST(Sim, ListsEveryRowOfTheTables) {
  const Answer list = sim({"--list"});
  EXPECT_EQ(list.code, 0);
  for (const auto& row : sim::topologies()) EXPECT_THAT(list.out, HasSubstr(row.name));
  for (const auto& row : sim::pattern_rows()) EXPECT_THAT(list.out, HasSubstr(row.name));
  for (const auto& row : sim::size_rows()) EXPECT_THAT(list.out, HasSubstr(row.name));
  for (const Controller* c : controllers()) EXPECT_THAT(list.out, HasSubstr(c->name));
  for (const char* word : {"roce", "irn", "srnic", "spray", "input-queued", "red", "mixed"})
    EXPECT_THAT(list.out, HasSubstr(word));
  // Two columns that a wide terminal holds.
  std::istringstream lines(list.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    EXPECT_LE(line.size(), 140U) << line;
    EXPECT_TRUE(line.size() > 24 && line[23] == ' ' && line[24] != ' ') << line;
  }
}

TEST(Sim, RefusesWithOneSentence) {
  for (const auto& [args, sentence] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{}, "needs a scenario FILE"},
           {{"no-such.toml"}, "'no-such.toml' cannot be read"},
           {{WEFT_SOURCE_DIR "/examples"}, "examples' cannot be read"},
           {{kExample, "--list"}, "--list takes no scenario and no settings"},
           {{"--list", "--bench"}, "--list or --bench, not both"},
           {{"--list", "--json"}, "--json: means nothing with --list"},
           {{"--bench", "--set", "seed=2"}, "--bench takes no scenario and no settings"},
           {{kExample, "--set", "switch.colour=red"}, "switch.colour: there is no such setting"},
           {{kExample, "--set", "network.delay=2"}, "network.delay: '2'"},
           {{kExample, "--set", "hosts=55"}, "55 is not k^3/4"},
           {{kExample, "--seed", "x"}, "seed"},
           {{kExample, "--out", kExample + "/x"}, "--out: the folder"},
           {{kExample, "--out", ""}, "--out: it is followed by nothing"},
           {{kExample, "--trace", ""}, "--trace: it is followed by nothing"},
           {{kExample, "--db", ""}, "--db: it is followed by nothing"},
           {{kExample, "--set", "traffic.flows=10000001"}, "is not a whole number from 0 to 10000000"}}) {
    const Answer a = sim(args);
    EXPECT_EQ(a.code, 2) << sentence;
    EXPECT_THAT(a.err, HasSubstr(sentence));
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
    EXPECT_EQ(a.out, "");
  }
}

std::string written(const std::string& text) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "weft-sim-scenario.toml";
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

// A number with a point where a whole one stands is refused as what it is, not for want of quotes.
TEST(Sim, ANumberThatIsNotWholeIsRefusedAsThat) {
  for (const char* count : {"nan", "1.5", "-inf"}) {
    const Answer a = sim({written(std::string("hosts = 2\n[[flow]]\nfrom = 0\nto = 1\ncount = ") + count)});
    EXPECT_EQ(a.code, 2);
    EXPECT_THAT(a.err, HasSubstr(std::string("flow.count: '") + count + "' is not a whole number from 1"));
  }
}

// Some editors put a mark in front of UTF-8; UTF-16 is another matter.
TEST(Sim, AByteOrderMarkIsNoMistake) {
  const std::string scenario = "hosts = 2\n[[flow]]\nfrom = 0\nto = 1\ncount = 2\n";
  EXPECT_EQ(sim({written("\xEF\xBB\xBF" + scenario)}).code, 0);
  const Answer a = sim({written("\xFF\xFEh")});
  EXPECT_EQ(a.code, 2);
  EXPECT_THAT(a.err, HasSubstr("is UTF-16; save it as UTF-8"));
}

TEST(Sim, WritesTheSameFilesForTheSameSeed) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "weft-sim-test";
  std::string first;
  for (const char* round : {"a", "b"}) {
    const Answer a = sim(
        {kExample, "--set", "traffic.flows=50", "--seed", "3", "--json", "--out", (folder / round).string()});
    EXPECT_EQ(a.code, 0) << a.err;
    const std::string flows = content(folder / round / "flows.csv");
    EXPECT_EQ(std::count(flows.begin(), flows.end(), '\n'), 51);
    const std::string ports = content(folder / round / "ports.csv");
    EXPECT_EQ(std::count(ports.begin(), ports.end(), '\n'), 1 + 2 * 162);
    EXPECT_EQ(content(folder / round / "summary.json"), a.out);
    const std::string all = flows + ports + a.out;
    if (first.empty()) first = all;
    EXPECT_EQ(all, first);
  }
  std::filesystem::remove_all(folder);
}

TEST(Sim, ATableSaysWhatWasComputedAndWhatCameOfIt) {
  const Answer a = sim({kExample, "--set", "traffic.flows=50", "--set", "switch.pfc=true"});
  EXPECT_EQ(a.code, 0);
  for (const char* word : {"54 hosts, 45 switches", "6 hops", "120000 B in flight", "bdp_cap 110", "headroom",
                           "poisson", "slowdown", "link-hops", "PFC stopped"})
    EXPECT_THAT(a.out, HasSubstr(word));
}

}  // namespace
}  // namespace weft::cli
