#include "etcd/etcd.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "http/ask.h"

namespace weft::etcd {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAnswer = 8U << 20U;

std::string encoded(const std::string& bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int n =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

// What is no base64 decodes to nothing.
std::string decoded(const std::string& text) {
  std::string out(3 * (text.size() / 4), '\0');
  const int n =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (n < 0) return "";
  const auto padding = static_cast<std::size_t>(std::count(text.begin(), text.end(), '='));
  out.resize(static_cast<std::size_t>(n) - std::min(padding, static_cast<std::size_t>(n)));
  return out;
}

// The first key behind all that begin with `prefix`.
std::string behind(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

std::string text_at(const json& j, const char* name) {
  return j.is_object() && j.contains(name) && j[name].is_string() ? j[name].get<std::string>() : "";
}

// The gateway writes 64-bit numbers as strings.
std::int64_t revision_of(const json& answer) {
  const std::string text =
      answer.is_object() && answer.contains("header") ? text_at(answer["header"], "revision") : "";
  std::int64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

}  // namespace

Result<Cluster> Cluster::at(const std::vector<std::string>& members, const std::string& prefix) {
  if (prefix.empty())
    return fail("--prefix: it must not be empty, because all keys of the cluster would be meant");
  for (const std::string& m : members) {
    if (!(m.starts_with("http://") || m.starts_with("https://")) || !httplib::Client(m).is_valid())
      return fail(fmt::format("--etcd '{}': write http://HOST:PORT", m));
  }
  Cluster c;
  c.members_ = members;
  c.prefix_ = prefix;
  return c;
}

Result<std::string> Cluster::ask(const char* path, const std::string& question) {
  std::string first;
  for (std::size_t tried = 0; tried < members_.size(); ++tried) {
    http::Asker asker;
    auto answer = asker.ask({members_[current_], path, question, kPatience, kMostAnswer});
    if (answer.status == 200) return std::move(answer.body);
    if (first.empty())
      first = fmt::format(
          "etcd at {}: {}", members_[current_],
          answer.status != 0 ? fmt::format("it answers with status {}", answer.status) : answer.why);
    current_ = (current_ + 1) % members_.size();
  }
  return fail(first);
}

Result<Entries> Cluster::read() {
  const json question = {{"key", encoded(prefix_)}, {"range_end", encoded(behind(prefix_))}};
  const auto text = ask("/v3/kv/range", question.dump());
  if (!text) return tl::unexpected(text.error());
  const json answer = json::parse(*text, nullptr, false);
  Entries found;
  found.revision = revision_of(answer);
  if (found.revision == 0)
    return fail(fmt::format("etcd at {}: its answer is not that of etcd 3.4 or later", name()));
  if (!answer.contains("kvs") || !answer["kvs"].is_array()) return found;
  for (const json& kv : answer["kvs"]) {
    const std::string key = decoded(text_at(kv, "key"));
    if (key.starts_with(prefix_))
      found.all.push_back({key.substr(prefix_.size()), decoded(text_at(kv, "value"))});
  }
  return found;
}

Result<std::int64_t> Cluster::write(const std::vector<Write>& writes) {
  json all = json::array();
  for (const Write& w : writes) {
    const std::string key = encoded(prefix_ + w.key);
    if (w.value) {
      all.push_back({{"request_put", {{"key", key}, {"value", encoded(*w.value)}}}});
    } else {
      all.push_back({{"request_delete_range", {{"key", key}}}});
    }
  }
  const auto text = ask("/v3/kv/txn", json{{"success", std::move(all)}}.dump());
  if (!text) return tl::unexpected(text.error());
  const std::int64_t revision = revision_of(json::parse(*text, nullptr, false));
  if (revision == 0)
    return fail(fmt::format("etcd at {}: its answer is not that of etcd 3.4 or later", name()));
  return revision;
}

void Cluster::wait(std::int64_t revision) {
  const json question = {{"create_request",
                          {{"key", encoded(prefix_)},
                           {"range_end", encoded(behind(prefix_))},
                           {"start_revision", std::to_string(revision + 1)}}}};
  // One JSON object a line. The first says that the watch is there; any other ends it.
  http::Asker asker;
  (void)asker.ask(
      {members_[current_], "/v3/watch", question.dump(), kLongestWait, kMostAnswer}, [](std::string& line) {
        for (std::size_t end = line.find('\n'); end != std::string::npos; end = line.find('\n')) {
          const json said = json::parse(line.substr(0, end), nullptr, false);
          line.erase(0, end + 1);
          const bool only_there = said.is_object() && said.contains("result") &&
                                  said["result"].contains("created") && !said["result"].contains("events") &&
                                  !said["result"].contains("canceled");
          if (!only_there) return false;
        }
        return true;
      });
}

}  // namespace weft::etcd
