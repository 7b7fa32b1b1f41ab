// What stands for device memory: a block of the process's own (device_memory.cc says what programs see of
// it).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "live/abi/handles.h"

namespace weft::live::abi {

class Block {
 public:
  // nullptr: the device has no room for it.
  static std::shared_ptr<Block> make(std::size_t length, std::size_t alignment);
  Block() = default;
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::uint8_t* bytes() const { return bytes_; }
  bool has(std::uint64_t offset, std::uint64_t length) const {
    return offset <= length_ && length <= length_ - offset;
  }

 private:
  std::uint8_t* bytes_ = nullptr;
  std::size_t length_ = 0;
};

struct DmHandle {
  ibv_dm base{};
  std::shared_ptr<Block> block;
};

// Another handle of the block.
ibv_dm* import_block(ibv_context* context, const DmHandle& from);

}  // namespace weft::live::abi
