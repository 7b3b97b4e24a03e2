#include "leat/pipeline/ops/follow_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/codec/image_formats.h"
#include "leat/codec/json/json_rows.h"
#include "leat/pipeline/ops/geometry.h"
#include "leat/pipeline/ops/image_run.h"
#include "leat/pipeline/ops/moved.h"
#include "leat/pipeline/ops/orientation.h"
#include "leat/pipeline/program/decoded_record.h"
#include "leat/pipeline/program/sample_view.h"

namespace leat {
namespace {

constexpr std::size_t kBoxSides = 4;
/// Whole numbers that a double holds.
constexpr double kMostLabel = 9007199254740992.0;

/// How large the picture is before any op, upright.
Result<PixelSize> size_of(const Leader& leader, const SampleView& sample) {
  const std::span<const std::byte> record = sample.record_of(leader.column);
  if (!record.empty()) {
    const std::optional<RecordArray> array = read_record(record);
    if (!array || array->spec.shape.size() != 3) {
      return Error(ErrorCode::kInternal, "this is no decoded picture");
    }
    return PixelSize{static_cast<std::uint32_t>(array->spec.shape[1]),
                     static_cast<std::uint32_t>(array->spec.shape[0])};
  }
  LEAT_TRY(const ImageHeader header,
           read_image_header(sample.bytes_of(leader.column),
                             leader.decode.max_pixels));
  LEAT_TRY_VOID(check_orientation(header, leader.decode));
  return upright_size(header, leader.decode);
}

template <class Number>
Value array_of(const std::vector<Number>& numbers, DType dtype,
               std::vector<std::int64_t> shape) {
  ArrayValue array{{dtype, std::move(shape)},
                   Buffer(numbers.size() * sizeof(Number))};
  if (!numbers.empty()) {
    std::memcpy(array.bytes.data(), numbers.data(), array.bytes.size());
  }
  return Value(std::move(array));
}

/// The common part of both kinds: they know the geometry of the pixels.
class FollowProgram : public ValueProgram {
 public:
  FollowProgram(std::vector<Op> ops, std::string field,
                std::optional<Leader> leader)
      : ops_(std::move(ops)),
        field_(std::move(field)),
        field_hash_(xxh3_64(as_bytes(field_))),
        leader_(std::move(leader)) {}

  Joining joining() const override { return Joining::kRagged; }

  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    return encoded_bytes * 4 + 64;  // A number and a comma are two bytes.
  }

  std::string remedy() const override {
    return "give all rows as many numbers";
  }

  Result<Value> run(const SampleInput& input, const SampleRandom& random,
                    Scratch&, RunNotes&) const override {
    Result<Value> value = make(input, random);
    if (!value) return std::move(value).error().while_doing(field_);
    return value;
  }

 protected:
  /// The picture that rows lie in, and what becomes of it.
  struct Canvas {
    PixelSize size;
    Geometry geometry;
  };

  virtual Result<Value> make(const SampleInput& input,
                             const SampleRandom& random) const = 0;

  /// nullopt: there is no picture.
  Result<std::optional<Canvas>> canvas(const SampleInput& input,
                                       const SampleRandom& random) const {
    if (!leader_) return std::optional<Canvas>();
    if (input.sample == nullptr) {
      return invalid(
          "boxes and keypoints follow their picture, which is not there: use a "
          "loader");
    }
    Canvas canvas;
    LEAT_TRY(canvas.size, size_of(*leader_, *input.sample));
    std::vector<SizeAtOp> sizes;
    canvas.geometry =
        plan_geometry(ops_, canvas.size, random, field_hash_, &sizes);
    for (const auto& [op, size] : sizes) {
      LEAT_TRY_VOID(input.sample->meet({.op_index = op->index,
                                        .op = op->name,
                                        .field = field_,
                                        .width = size.width,
                                        .height = size.height}));
    }
    return std::optional(std::move(canvas));
  }

  const std::vector<Op>& ops() const { return ops_; }

 private:
  const std::vector<Op> ops_;
  const std::string field_;
  const std::uint64_t field_hash_;
  const std::optional<Leader> leader_;
};

Box box_of(const JsonRow& row, BoxFormat format) {
  switch (format) {
    case BoxFormat::kXyxy:
      break;
    case BoxFormat::kXywh:
      return {row[0], row[1], row[0] + row[2], row[1] + row[3]};
    case BoxFormat::kCxcywh:
      return {row[0] - row[2] / 2, row[1] - row[3] / 2, row[0] + row[2] / 2,
              row[1] + row[3] / 2};
  }
  return {row[0], row[1], row[2], row[3]};
}

/// Errors: kCorrupt: it ends before it begins, so its format may be another.
Result<Box> checked(const Box& box, const JsonRow& row, BoxFormat format) {
  if (box.left <= box.right && box.top <= box.bottom) return box;
  return corrupt("the box [{}] ends before it begins{}", fmt::join(row, ", "),
                 format == BoxFormat::kXyxy
                     ? ", as format=\"xyxy\" reads it: if its numbers are "
                       "left, top, width and height, say format=\"xywh\""
                     : "");
}

class BoxesProgram final : public FollowProgram {
 public:
  BoxesProgram(std::vector<Op> ops, std::string field,
               std::optional<Leader> leader, BoxPart part)
      : FollowProgram(std::move(ops), std::move(field), std::move(leader)),
        part_(part) {}

 private:
  const ParseBoxesOp& op() const {
    return std::get<ParseBoxesOp>(ops()[0].params);
  }

  Result<Value> make(const SampleInput& input,
                     const SampleRandom& random) const override {
    std::vector<JsonRowsPath> paths = {op().path};
    if (op().labels) paths.push_back(*op().labels);
    LEAT_TRY(const auto rows, find_json_rows(input.encoded, paths));
    LEAT_TRY_VOID(check(rows));
    LEAT_TRY(const std::optional<Canvas> picture, canvas(input, random));
    std::vector<float> boxes;
    std::vector<std::int64_t> labels;
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      const JsonRow& row = rows[0][i];
      LEAT_TRY(Box box, checked(box_of(row, op().format), row, op().format));
      if (op().is_normalized) scale(box, picture->size);
      const MovedBox now =
          picture ? moved(picture->geometry, box) : MovedBox{box, 1};
      if (!is_kept(now)) continue;
      for (const double side :
           {now.box.left, now.box.top, now.box.right, now.box.bottom}) {
        boxes.push_back(static_cast<float>(side));
      }
      if (op().labels) {
        labels.push_back(static_cast<std::int64_t>(rows[1][i][0]));
      }
    }
    const auto count = static_cast<std::int64_t>(boxes.size() / kBoxSides);
    if (part_ == BoxPart::kLabels) {
      return array_of(labels, DType::kInt64, {count});
    }
    return array_of(boxes, DType::kFloat32, {count, kBoxSides});
  }

  Result<void> check(const std::vector<std::vector<JsonRow>>& rows) const {
    for (const JsonRow& row : rows[0]) {
      if (row.size() == kBoxSides) continue;
      return corrupt("a box has {} numbers instead of 4", row.size());
    }
    if (!op().labels) return {};
    if (rows[1].size() != rows[0].size()) {
      return corrupt("there are {} boxes and {} labels", rows[0].size(),
                     rows[1].size());
    }
    for (const JsonRow& row : rows[1]) {
      if (row.size() == 1 && std::abs(row[0]) <= kMostLabel &&
          row[0] == std::floor(row[0])) {
        continue;
      }
      return corrupt("a label is no whole number");
    }
    return {};
  }

  static void scale(Box& box, PixelSize size) {
    box = {box.left * size.width, box.top * size.height, box.right * size.width,
           box.bottom * size.height};
  }

  /// Sides as they are delivered: of 1 pixel is not less than 1 pixel.
  bool is_kept(const MovedBox& now) const {
    const auto side = [](double length) { return static_cast<float>(length); };
    return side(now.box.width()) >= side(op().min_size) &&
           side(now.box.height()) >= side(op().min_size) &&
           now.visible >= op().min_visibility;
  }

  const BoxPart part_;
};

/// Rows of x and y, or of x, y and whether it is visible.
class KeypointsProgram final : public FollowProgram {
 public:
  using FollowProgram::FollowProgram;

 private:
  Result<Value> make(const SampleInput& input,
                     const SampleRandom& random) const override {
    const auto& op = std::get<ParseKeypointsOp>(ops()[0].params);
    const JsonRowsPath paths[] = {op.path};
    LEAT_TRY(const auto all, find_json_rows(input.encoded, paths));
    const std::vector<JsonRow>& rows = all[0];
    LEAT_TRY(const std::optional<Canvas> picture, canvas(input, random));
    const std::size_t width = rows.empty() ? 2 : rows[0].size();
    std::vector<float> numbers;
    for (const JsonRow& row : rows) {
      if (row.size() != width || width < 2 || width > 3) {
        return corrupt("a keypoint has {} numbers: all have 2, or all 3",
                       row.size());
      }
      Point point{row[0], row[1]};
      if (op.is_normalized) {
        point = {point.x * picture->size.width, point.y * picture->size.height};
      }
      const MovedPoint now =
          picture ? moved(picture->geometry, point) : MovedPoint{point, true};
      numbers.push_back(static_cast<float>(now.point.x));
      numbers.push_back(static_cast<float>(now.point.y));
      if (width == 3) {
        numbers.push_back(now.is_visible ? static_cast<float>(row[2]) : 0);
      }
    }
    return array_of(numbers, DType::kFloat32,
                    {static_cast<std::int64_t>(rows.size()),
                     static_cast<std::int64_t>(width)});
  }
};

}  // namespace

std::shared_ptr<const ValueProgram> compile_follow_program(
    std::vector<Op> ops, const std::string& field, std::optional<Leader> leader,
    BoxPart part) {
  if (std::holds_alternative<ParseKeypointsOp>(ops[0].params)) {
    return std::make_shared<KeypointsProgram>(std::move(ops), field,
                                              std::move(leader));
  }
  return std::make_shared<BoxesProgram>(std::move(ops), field,
                                        std::move(leader), part);
}

}  // namespace leat
