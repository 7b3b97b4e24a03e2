// Arrays as NumPy, MosaicML Streaming and LitData write them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/codec/litdata/litdata_array.h"
#include "leat/codec/mds/mds_array.h"
#include "leat/codec/npy/npy_header.h"
#include "leat/pipeline/ops/param_reader.h"
#include "leat/pipeline/ops/parsers/array_programs.h"
#include "leat/pipeline/ops/parsers/kinds.h"

namespace leat {
namespace {

DType dtype_of(const NpyHeader& header) {
  const auto of_size = [&](DType one, DType two, DType four, DType eight) {
    switch (header.item_bytes) {
      case 1:
        return one;
      case 2:
        return two;
      case 4:
        return four;
      default:
        return eight;
    }
  };
  switch (header.kind) {
    case NpyKind::kBool:
      return DType::kBool;
    case NpyKind::kSigned:
      return of_size(DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64);
    case NpyKind::kUnsigned:
      return of_size(DType::kUint8, DType::kUint16, DType::kUint32,
                     DType::kUint64);
    case NpyKind::kFloat:
      return of_size(DType::kFloat16, DType::kFloat16, DType::kFloat32,
                     DType::kFloat64);
    case NpyKind::kComplex:
      return header.item_bytes == 8 ? DType::kComplex64 : DType::kComplex128;
  }
  return DType::kUint8;
}

using ReadHeader = std::function<Result<NpyHeader>(std::span<const std::byte>)>;

/// A format of arrays: a header, and behind it the items.
class ArrayFormat {
 public:
  struct Found {
    TensorSpec spec;
    std::span<const std::byte> items;
  };

  /// `op` is its name in Python.
  ArrayFormat(ReadHeader read_header, std::string op, std::string field)
      : read_header_(std::move(read_header)),
        op_(std::move(op)),
        field_(std::move(field)) {}

  Result<Found> read(std::span<const std::byte> encoded) const {
    Result<NpyHeader> header = read_header_(encoded);
    if (!header) return std::move(header).error().while_doing(field_);
    Found array{{dtype_of(*header), std::move(header->shape)},
                encoded.subspan(header->data_offset)};
    // A byte that is neither 0 nor 1 is not a bool.
    if (header->kind == NpyKind::kBool &&
        std::ranges::any_of(
            array.items, [](std::byte item) { return item > std::byte{1}; })) {
      return corrupt("{}: a bool is neither 0 nor 1", field_);
    }
    return array;
  }

  Result<void> store(const Found& array, std::span<std::byte> out) const {
    LEAT_CHECK(out.size() == array.items.size());
    std::ranges::copy(array.items, out.begin());
    return {};
  }

  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const {
    return encoded_bytes;
  }

  std::string remedy() const {
    return fmt::format(
        "save all with one type and shape; {}(ragged=True) takes arrays that "
        "differ in their first dimension, and collate= any",
        op_);
  }
  std::string ragged_remedy() const {
    return "save all with one type, and of one shape behind the first "
           "dimension";
  }

 private:
  ReadHeader read_header_;
  std::string op_;
  std::string field_;
};

ParseField array_field(ReadHeader read_header, std::string op,
                       Joining joining) {
  return [=](const std::string& field) {
    return array_program(ArrayFormat(read_header, op, field), joining);
  };
}

ParseField make_npy(ParamReader& params) {
  return array_field(
      [](std::span<const std::byte> encoded) {
        return read_npy_header(encoded);
      },
      "leat.ops.LoadNpy", params.joining());
}

ParseField make_mds(ParamReader& params) {
  std::optional<MdsItems> items;  // None: each array says its type.
  if (!params.is_null("dtype")) {
    items = mds_items_named(params.text("dtype"));
    if (!items) {
      params.fail(
          "dtype must be one of uint8 to uint64, int8 to int64, float16, "
          "float32, float64");
    }
  }
  return array_field(
      [items](std::span<const std::byte> encoded) {
        return read_mds_array(encoded, items);
      },
      "leat.ops.LoadMdsArray", params.joining());
}

ParseField make_litdata(ParamReader& params) {
  return array_field(read_litdata_array, "leat.ops.LoadLitdataArray",
                     params.joining());
}

constexpr std::string_view kUsualNpys[] = {"npy"};
constexpr ParamInfo kRagged = {"ragged", ParamKind::kFlag, "false",
                               "arrays may differ in their first dimension"};
constexpr std::array kRaggedAlone = {kRagged};
constexpr std::array kMdsParams = {
    ParamInfo{"dtype", ParamKind::kText, "null",
              "uint8 to uint64, int8 to int64 or float16 to float64, as the "
              "column says; default: each array says it"},
    kRagged};

}  // namespace

constinit const ParseOpKind kLoadNpy = {
    .info = {"load_npy", "an array as numpy.save writes it", kRaggedAlone,
             "field"},
    .usual_fields = kUsualNpys,
    .make = make_npy};

constinit const ParseOpKind kLoadMdsArray = {
    .info = {"load_mds_array", "an array of a column ndarray of MDS",
             kMdsParams, "field"},
    .make = make_mds};

constinit const ParseOpKind kLoadLitdataArray = {
    .info = {"load_litdata_array", "a tensor or an array in a chunk of LitData",
             kRaggedAlone, "field"},
    .make = make_litdata};

}  // namespace leat
