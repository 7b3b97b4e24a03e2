// The common part of the fuzz targets of the image formats.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/pipeline/program/program.h"

namespace leat::fuzz {

/// Runs bytes through several programs. The first byte chooses the sample, and
/// so the crop; the rest is the image behind its magic bytes.
class ImageFuzzer {
 public:
  ImageFuzzer() {
    // 2^20 pixels: enough to go wrong, few enough to be fast.
    constexpr const char* kChains[] = {
        "decode_image:max_pixels=1048576",
        "decode_image:L:depth=8:max_pixels=1048576,center_crop:33",
        "decode_image:I;16:max_pixels=1048576,random_crop:32,cast:float16",
        "decode_image:max_pixels=1048576,random_resized_crop:32,normalize:0:"
        "std=1",
        "decode_image:max_pixels=1048576:exact=true,resize:40,center_crop:32",
        "decode_image:max_pixels=1048576,random_crop:48:padding=3,"
        "color_jitter:0.4:contrast=0.4:saturation=0.4:hue=0.1,pad:1/2/3/4",
        "decode_image:max_pixels=1048576,letterbox:33,random_vertical_flip,"
        "random_affine:180:translate=1/1:scale=0.01/90:shear=-80/80/-80/80:"
        "interpolation=bilinear,gaussian_blur:9,rand_augment:4,normalize:0:"
        "std=1,random_erasing:1",
        "decode_image:L:max_pixels=1048576,random_rotation:180:expand=true,"
        "trivial_augment_wide,auto_augment:svhn,center_crop:21,aug_mix:9,"
        "ten_crop:17",
        "decode_mask:max_pixels=1048576,random_crop:32:padding=2,"
        "random_horizontal_flip",
        "decode_mask:dtype=int64:max_pixels=1048576,random_rotation:90,"
        "resize:24/31"};
    for (const char* chain : kChains) {
      auto outputs = compile_ops(*parse_ops(chain), {{"data", {}}});
      programs_.push_back((*outputs)[0].program);
    }
  }

  void run(std::string magic, std::span<const std::uint8_t> data) const {
    if (data.empty()) return;
    // A heap block of the exact size, so that reading one byte too many is
    // seen.
    const std::size_t size = magic.size() + data.size() - 1;
    const std::unique_ptr<std::byte[]> encoded(new std::byte[size]);
    std::memcpy(encoded.get(), magic.data(), magic.size());
    std::memcpy(encoded.get() + magic.size(), data.data() + 1, data.size() - 1);
    const std::span<const std::byte> bytes(encoded.get(), size);
    for (const auto& program : programs_) {
      const Result<TensorSpec> spec = program->output_for(bytes);
      if (!spec) continue;
      const ScratchRef scratch = make_scratch();
      Buffer out(spec->size_bytes());
      RunNotes notes;
      // May well fail; must not crash.
      (void)program->run(bytes, {0, 0, SampleId{data[0]}}, *scratch, out.span(),
                         notes);
    }
  }

 private:
  std::vector<std::shared_ptr<const Program>> programs_;
};

}  // namespace leat::fuzz
