#include "leat/codec/image_formats.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/image/image_codec.h"

namespace leat {
namespace {

Result<void> check_pixels(const ImageHeader& header, std::uint64_t max_pixels) {
  const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
  if (pixels <= max_pixels) return {};
  return corrupt(
      "{} claims {} x {} pixels, more than the limit of {}; if you trust it, "
      "raise DecodeImage(max_pixels=...)",
      header.codec->name, header.width, header.height, max_pixels);
}

/// The formats of pictures, as in "JPEG, PNG nor WebP".
std::string names_of_pictures() {
  std::vector<std::string_view> names;
  for (const ImageCodec* codec : image_codecs()) {
    if (codec->has_pictures) names.push_back(codec->name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " nor " : ", ";
    text += names[i];
  }
  return text;
}

class AnyImageReader final : public ImageReader {
 public:
  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    const ImageCodec& codec = *header.codec;
    if (has_16_bits(request.mode) && header.depth != 16) {
      return invalid("this {} has no 16 bits a channel", codec.name);
    }
    if (request.mode == PixelMode::kLabels && !header.may_hold_labels) {
      return corrupt(
          "{} holds colours and no labels: a mask is a PNG in grey or with a "
          "palette, a grey TIFF, or an array in a .npy",
          codec.name);
    }
    if (request.mode != PixelMode::kLabels && !codec.has_pictures) {
      return corrupt(
          "a {} is no picture: DecodeMask reads it as a mask, and LoadNpy as "
          "an array",
          codec.name);
    }
    current_ = &reader_of(codec);
    return current_->start(encoded, header, request);
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    return current_->read_rows(into, stride_bytes, rows);
  }

  std::uint32_t warnings() const override {
    return current_ == nullptr ? 0 : current_->warnings();
  }

  void finish() override {
    if (current_ != nullptr) current_->finish();
  }

 private:
  ImageReader& reader_of(const ImageCodec& codec) {
    for (const auto& [made_for, reader] : readers_) {
      if (made_for == &codec) return *reader;
    }
    return *readers_.emplace_back(&codec, codec.make_reader()).second;
  }

  // Made when first needed.
  std::vector<std::pair<const ImageCodec*, std::unique_ptr<ImageReader>>>
      readers_;
  ImageReader* current_ = nullptr;
};

}  // namespace

std::string_view name_of(const ImageCodec& codec) { return codec.name; }

const ImageCodec* image_codec_of(std::span<const std::byte> encoded) {
  for (const ImageCodec* codec : image_codecs()) {
    if (codec->recognizes(as_text(encoded))) return codec;
  }
  return nullptr;
}

Result<ImageHeader> read_image_header(std::span<const std::byte> encoded,
                                      std::uint64_t max_pixels) {
  if (encoded.empty()) {
    return corrupt("the image has no bytes");
  }
  const ImageCodec* const codec = image_codec_of(encoded);
  if (codec == nullptr) {
    return corrupt(
        "neither {}: the {} bytes begin with {:02x}; check the field that is "
        "decoded",
        names_of_pictures(), encoded.size(),
        std::to_integer<unsigned>(encoded[0]));
  }
  LEAT_TRY(ClaimedImage claimed, codec->read_header(encoded));
  claimed.header.codec = codec;
  LEAT_TRY_VOID(check_pixels(claimed.header, max_pixels));
  // Only now, so that a bomb is called a bomb.
  if (!claimed.fault.empty()) return corrupt(claimed.fault);
  return claimed.header;
}

std::unique_ptr<ImageReader> make_image_reader() {
  return std::make_unique<AnyImageReader>();
}

}  // namespace leat
