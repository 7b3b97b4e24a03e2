// The ops with their checked parameters.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/image/image.h"
#include "leat/codec/json/json_rows.h"
#include "leat/pipeline/ops/augment_ops.h"
#include "leat/pipeline/ops/weights.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/tensor.h"
#include "leat/pipeline/program/value.h"

namespace leat {

struct FieldProgram;   // parse_op.h
struct ParseOpKind;    // parse_op.h
class PictureOp;       // picture_op.h
struct PictureOpKind;  // picture_op.h

/// Makes the program of the field of that name.
using ParseField = std::function<FieldProgram(const std::string& field)>;

struct PixelSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const PixelSize&, const PixelSize&) = default;
};

enum class PixelLayout : std::uint8_t {
  kChw,
  kHwc,
  kHw,  ///< For labels.
};
enum class ExifOrientation : std::uint8_t {
  kApply,
  kIgnore,
  kRefuse,  ///< A picture that is not upright is a bad sample.
};
/// Whether a JPEG may be decoded at a fraction of its size before a resize.
enum class DctScaling : std::uint8_t { kAllowed, kOff };

struct DecodeImageOp {
  PixelMode mode = PixelMode::kRgb;
  PixelLayout layout = PixelLayout::kChw;
  ExifOrientation exif_orientation = ExifOrientation::kApply;
  bool is_orientation_said = true;  ///< By the user.
  std::string annotated_by;         ///< For kRefuse: "'mask' and 'boxes'".
  DctScaling dct_scaling = DctScaling::kAllowed;
  std::uint64_t max_pixels = kDefaultMaxPixels;
  bool cuts_depth = false;  ///< Keeps the upper 8 bits of 16.
  bool is_ragged = false;   ///< Pictures keep their own sizes.
  // For kLabels.
  DType label_dtype = DType::kUint8;  ///< Or kInt64.
  std::uint8_t ignore_index = 255;    ///< The value outside the picture.

  bool is_mask() const { return mode == PixelMode::kLabels; }
};

struct ResizeOp {
  PixelSize size;
  std::uint32_t shorter_side = 0;  ///< If not 0: instead of `size`.
  Interpolation interpolation = Interpolation::kBilinear;
};

struct CenterCropOp {
  PixelSize size;
  FillColour fill = {0, 0, 0};
};

struct RandomResizedCropOp {
  PixelSize size;
  std::array<double, 2> scale = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3};
  Interpolation interpolation = Interpolation::kBilinear;
};

struct RandomHorizontalFlipOp {
  double p = 0.5;
};

/// Pixels on each side.
struct Padding {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t right = 0;
  std::uint32_t bottom = 0;
};

struct PadOp {
  Padding padding;
  PixelSize least;  ///< 0 by 0, or a minimum size with the picture centred.
  FillColour fill = {0, 0, 0};
};

struct RandomCropOp {
  PixelSize size;
  Padding padding;
  FillColour fill = {0, 0, 0};
};

/// Each is drawn from its bounds; hue's are around 0, the others' around 1.
struct ColorJitterOp {
  std::array<double, 2> brightness = {1, 1};
  std::array<double, 2> contrast = {1, 1};
  std::array<double, 2> saturation = {1, 1};
  std::array<double, 2> hue = {0, 0};
};

struct NormalizeOp {
  std::vector<double> mean;  ///< One number, or one for each channel.
  std::vector<double> std;   ///< As many, none of them 0.
  /// Without one, floats keep their type, and others become float32.
  std::optional<DType> dtype;
};

/// Scales a picture to fit into `size`, in proportion, and pads both sides.
struct LetterboxOp {
  PixelSize size;
  FillColour fill = {114, 114, 114};
  Interpolation interpolation = Interpolation::kBilinear;
};

/// FiveCrop and TenCrop: the corners and the middle; then the same mirrored.
struct ManyCropsOp {
  PixelSize size;
  bool is_mirrored_too = false;
  bool is_mirrored_vertically = false;
  std::uint32_t view = 0;  ///< Which of them; set where they are made.
};
/// The four corners and the middle.
inline constexpr std::uint32_t kCropPlaces = 5;

enum class CastScale : std::uint8_t { kTo01, kNone };

struct CastOp {
  DType dtype = DType::kFloat32;
  CastScale scale = CastScale::kTo01;
};

/// The numbers of a box: corners, or one corner or the middle and the size.
enum class BoxFormat : std::uint8_t { kXyxy, kXywh, kCxcywh };

struct ParseBoxesOp {
  JsonRowsPath path;
  BoxFormat format = BoxFormat::kXyxy;
  bool is_normalized = false;          ///< To the picture's width and height.
  std::optional<JsonRowsPath> labels;  ///< One for each box.
  std::string labels_to;               ///< The name of their field.
  double min_size = 1;        ///< Pixels of a side; smaller ones are dropped.
  double min_visibility = 0;  ///< The least share of the area that must remain.
};

struct ParseKeypointsOp {
  JsonRowsPath path;
  bool is_normalized = false;
};

struct FunctionOp {
  std::shared_ptr<const UserFunction> function;
  Joining joining = Joining::kStack;
  /// For an op on several fields, which is part of each one's chain.
  std::vector<std::string> fields;
  bool draws = false;
  /// It skips samples, always the same ones.
  bool filters = false;
};

/// Pads a batch; the last op of its field.
struct PadToOp {
  PixelSize size;  ///< 0 by 0: the largest in the batch.
  std::uint32_t multiple = 1;
  double fill = 0;
};

/// An op of the list that parse_op.h declares.
struct ParseOpParams {
  const ParseOpKind* kind = nullptr;
  ParseField parse;
};

/// An op of the list that picture_op.h declares.
struct PictureOpParams {
  const PictureOpKind* kind = nullptr;
  std::shared_ptr<const PictureOp> op;
  /// Whether it works on the delivered array. The compiler of the chain says
  /// so.
  bool is_on_array = false;
};

using OpParams =
    std::variant<DecodeImageOp, ResizeOp, CenterCropOp, RandomResizedCropOp,
                 RandomHorizontalFlipOp, RandomCropOp, PadOp, ColorJitterOp,
                 NormalizeOp, CastOp, ParseOpParams, FunctionOp, PadToOp,
                 ParseBoxesOp, ParseKeypointsOp, RandomVerticalFlipOp,
                 RandomColourOp, GrayscaleOp, GaussianBlurOp, PictureOpParams,
                 RandomRotationOp, RandomAffineOp, RandAugmentOp, AutoAugmentOp,
                 TrivialAugmentWideOp, AugMixOp, LetterboxOp, ManyCropsOp>;

/// An op that passed all checks that need no field.
struct Op {
  std::string name;       ///< In the user's spelling: "random_resized_crop".
  std::size_t index = 0;  ///< Its position in the user's list.
  std::string field;      ///< Empty: see compile_ops().
  std::string to;         ///< Empty: same as `field`.
  OpParams params;
  /// Draws for each field separately, and need not move all fields that belong
  /// together.
  bool is_independent = false;

  // For an op in the chain of a field (see chains.h): the field whose draws it
  // uses, as a hash; none: its chain's.
  std::optional<std::uint64_t> drawn_for = std::nullopt;
  /// Whether all fields must have the same size there.
  bool meets_siblings = false;
};

/// Whether it begins a chain by reading a field of bytes. All others work on a
/// decoded image, except for FunctionOp, which accepts anything.
bool opens_chain(const Op& op);

/// Checks the parameters against op_table.h.
///
/// Errors:
///   kInvalidArgument  no such op or parameter, or a value that makes no sense
Result<Op> make_op(const OpSpec& spec, std::size_t index);

}  // namespace leat
