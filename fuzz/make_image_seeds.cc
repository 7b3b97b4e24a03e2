// make_image_seeds FOLDER: writes small valid images for jpeg_fuzz, png_fuzz,
// tiff_fuzz and webp_fuzz to start from, into a folder for each.

#include <filesystem>
#include <fstream>
#include <string>

#include "leat/codec/testing/encode_image.h"
#include "leat/codec/testing/encode_tiff.h"

namespace {

using leat::testing::encode_jpeg;
using leat::testing::encode_png;
using leat::testing::encode_tiff;
using leat::testing::encode_webp;
using leat::testing::exif_of;
using leat::testing::picture;
using leat::testing::with_webp_exif;

// As image_fuzz.h wants it: a byte that chooses the sample, then the image
// without its magic bytes.
void write_seed(const std::filesystem::path& folder, const std::string& name,
                const std::string& encoded, std::size_t magic_bytes,
                char sample = 'a') {
  std::filesystem::create_directories(folder);
  std::ofstream out(folder / name, std::ios::binary);
  out << sample << encoded.substr(magic_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  const auto jpeg = [&](const std::string& name, const std::string& encoded) {
    write_seed(folder / "jpeg", name, encoded, 3);
  };
  jpeg("420", encode_jpeg(picture(40, 33)));
  jpeg("444", encode_jpeg(picture(40, 33),
                          {.horizontal_sampling = 1, .vertical_sampling = 1}));
  jpeg("progressive", encode_jpeg(picture(70, 90), {.is_progressive = true}));
  jpeg("restarts", encode_jpeg(picture(40, 33), {.restart_rows = 1}));
  jpeg("grey", encode_jpeg(picture(40, 33, 1)));
  jpeg("cmyk", encode_jpeg(picture(40, 33, 4)));
  jpeg("exif", encode_jpeg(picture(40, 33), {.exif = exif_of(6)}));
  const auto png = [&](const std::string& name, const std::string& encoded) {
    write_seed(folder / "png", name, encoded, 8);
  };
  png("rgb", encode_png(picture(40, 33)));
  png("rgba16", encode_png(picture(20, 33, 4), {.depth = 16}));
  png("grey1", encode_png(picture(40, 33, 1), {.depth = 1}));
  png("interlaced", encode_png(picture(40, 33), {.is_interlaced = true}));
  png("grey", encode_png(picture(40, 33, 1)));
  png("grey16", encode_png(picture(20, 33, 1), {.depth = 16}));
  png("exif", encode_png(picture(40, 33, 2), {.exif = exif_of(5)}));
  const auto webp = [&](const std::string& name, const std::string& encoded) {
    write_seed(folder / "webp", name, encoded, 12);
  };
  webp("lossy", encode_webp(picture(40, 33)));
  webp("lossless", encode_webp(picture(40, 33), {.quality = 100}));
  webp("alpha", encode_webp(picture(40, 33, 4)));
  webp("exif", with_webp_exif(picture(40, 33), exif_of(6)));
  const auto tiff = [&](const std::string& name, const std::string& encoded) {
    // tiff_fuzz takes the order of bytes from the sample.
    write_seed(folder / "tiff", name, encoded, 4,
               encoded[0] == 'I' ? 'a' : 'b');
  };
  tiff("rgb", encode_tiff(picture(40, 33)));
  tiff("rgba", encode_tiff(picture(40, 33, 4), {.is_packed = true}));
  tiff("grey", encode_tiff(picture(40, 33, 1), {.is_white_0 = true}));
  tiff("grey16",
       encode_tiff(picture(20, 33, 1), {.depth = 16, .is_big_endian = true}));
  tiff("tiles",
       encode_tiff(picture(40, 33, 1), {.depth = 16, .tile_side = 16}));
  return 0;
}
