#include "leat/index/gunzip.h"

#include <isa-l/igzip_lib.h>

#include <array>
#include <utility>

#include "leat/base/errors.h"

namespace leat {

struct Gunzip::State {
  inflate_state inflate;
  std::array<char, 64 << 10> text;
  bool is_done = false;
};

Gunzip::Gunzip(Take take)
    : take_(std::move(take)), state_(std::make_unique<State>()) {
  isal_inflate_init(&state_->inflate);
  state_->inflate.crc_flag = ISAL_GZIP;
}

Gunzip::~Gunzip() = default;

Result<void> Gunzip::feed(std::span<const std::byte> bytes) {
  inflate_state& inflate = state_->inflate;
  inflate.next_in = reinterpret_cast<std::uint8_t*>(
      const_cast<std::byte*>(bytes.data()));  // It is read alone.
  inflate.avail_in = static_cast<std::uint32_t>(bytes.size());
  for (;;) {
    if (state_->is_done) {
      if (inflate.avail_in == 0) return {};
      // gzip files may follow one another.
      isal_inflate_reset(&inflate);
      inflate.crc_flag = ISAL_GZIP;
      state_->is_done = false;
    }
    inflate.next_out = reinterpret_cast<std::uint8_t*>(state_->text.data());
    inflate.avail_out = static_cast<std::uint32_t>(state_->text.size());
    if (isal_inflate(&inflate) != ISAL_DECOMP_OK) {
      return corrupt("it is no gzip, or it is damaged");
    }
    const std::size_t made = state_->text.size() - inflate.avail_out;
    if (made != 0) LEAT_TRY_VOID(take_({state_->text.data(), made}));
    state_->is_done = inflate.block_state == ISAL_BLOCK_FINISH;
    if (!state_->is_done && inflate.avail_in == 0 && inflate.avail_out != 0) {
      return {};
    }
  }
}

Result<void> Gunzip::finish() const {
  if (state_->is_done) return {};
  return corrupt("the gzip file is cut short");
}

}  // namespace leat
