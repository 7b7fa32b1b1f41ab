// Published vectors: FIPS 180-2's examples and RFC 4231's.
#include "wan/logic/hmac.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weft::wan {
namespace {

std::span<const std::uint8_t> bytes(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}
std::string hex(const Digest& d) {
  std::string s;
  for (const std::uint8_t b : d) {
    s += "0123456789abcdef"[b >> 4U];
    s += "0123456789abcdef"[b & 15U];
  }
  return s;
}

TEST(Sha256, HasThePublishedValues) {
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::vector<std::uint8_t>(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TakesItsInputInAnyPieces) {
  std::vector<std::uint8_t> all(300);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i * 7);
  for (std::size_t piece = 1; piece < 130; ++piece) {
    Sha256 h;
    for (std::size_t at = 0; at < all.size(); at += piece)
      h.update(std::span(all).subspan(at, std::min(piece, all.size() - at)));
    EXPECT_EQ(h.finish(), sha256(all)) << piece;
  }
}

TEST(Hmac, HasThePublishedValues) {
  EXPECT_EQ(hex(Hmac(std::vector<std::uint8_t>(20, 0x0b)).of(bytes("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(Hmac(bytes("Jefe")).of(bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(Hmac(std::vector<std::uint8_t>(131, 0xaa))
                    .of(bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, TellsEveryBitApart) {
  const Hmac key(bytes("secret"));
  std::vector<std::uint8_t> m(64, 1);
  const Digest right = key.of(m);
  EXPECT_TRUE(same(right, key.of(m)));
  for (std::size_t bit = 0; bit < m.size() * 8; ++bit) {
    m[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(same(right, key.of(m))) << bit;
    m[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
  }
  EXPECT_FALSE(same(right, std::span(right).first(31)));
}

}  // namespace
}  // namespace weft::wan
