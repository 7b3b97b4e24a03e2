#include "leat/plan/packing.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "leat/pipeline/packed_batch.h"
#include "leat/plan/balance.h"
#include "leat/plan/balance_within.h"
#include "leat/plan/token_budget.h"

namespace py = pybind11;

namespace leat {
namespace {

template <class T>
using ArrayOf = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <class T>
std::span<const T> span_of(const ArrayOf<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

template <class T, class Values>
py::array_t<T> array_of(const Values& values) {
  py::array_t<T> array(static_cast<py::ssize_t>(values.size()));
  std::ranges::transform(values, array.mutable_data(),
                         [](auto value) { return static_cast<T>(value); });
  return array;
}

/// (samples, begins, lengths, offsets): int64; the first three by piece, and
/// `offsets` says where each row begins among them.
py::tuple pack_lengths(const ArrayOf<std::uint64_t>& lengths,
                       std::uint32_t capacity, const std::string& method,
                       std::uint32_t bins, std::uint32_t max_sequences,
                       const std::string& long_documents) {
  const PackOptions options = {
      .capacity = capacity,
      .method = value_or_raise(parse_pack_method(method)),
      .bins = bins,
      .max_sequences = max_sequences,
      .long_documents = value_or_raise(parse_long_documents(long_documents))};
  const auto of_window = span_of(lengths);
  const PackedRows rows = value_or_raise([&] {
    const GilReleased unlocked;
    return pack(of_window, options);
  }());
  const auto pieces = static_cast<py::ssize_t>(rows.pieces.size());
  py::array_t<std::int64_t> samples(pieces);
  py::array_t<std::int64_t> begins(pieces);
  py::array_t<std::int64_t> sizes(pieces);
  for (py::ssize_t i = 0; i < pieces; ++i) {
    const PackPiece& piece = rows.pieces[static_cast<std::size_t>(i)];
    samples.mutable_at(i) = piece.sample;
    begins.mutable_at(i) = static_cast<std::int64_t>(piece.begin);
    sizes.mutable_at(i) = piece.length;
  }
  return py::make_tuple(samples, begins, sizes,
                        array_of<std::int64_t>(rows.offsets));
}

/// The rows that pack_lengths() described. REQUIRES: arrays of equal length.
PackedRows rows_of(std::span<const std::int64_t> samples,
                   std::span<const std::int64_t> begins,
                   std::span<const std::int64_t> lengths,
                   std::span<const std::int64_t> offsets) {
  PackedRows rows;
  rows.pieces.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!std::in_range<std::uint32_t>(samples[i]) || begins[i] < 0 ||
        !std::in_range<std::uint32_t>(lengths[i])) {
      throw py::value_error("a piece is out of range");
    }
    rows.pieces.push_back({static_cast<std::uint64_t>(begins[i]),
                           static_cast<std::uint32_t>(samples[i]),
                           static_cast<std::uint32_t>(lengths[i])});
  }
  rows.offsets.assign(offsets.begin(), offsets.end());
  const bool is_whole = !offsets.empty() && offsets.front() == 0 &&
                        rows.offsets.back() == rows.pieces.size() &&
                        std::ranges::is_sorted(offsets);
  if (!is_whole) throw py::value_error("offsets are not those of the pieces");
  return rows;
}

DType dtype_of(const py::array& array) {
  const auto name = py::cast<std::string>(array.dtype().attr("name"));
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) {
    raise_python(Error(ErrorCode::kInvalidArgument,
                       "documents of " + name + "; tokens are whole numbers"));
  }
  return *dtype;
}

/// (tokens, segment_ids, positions, labels, cu_seqlens, max_seqlen).
/// `values` is contiguous and aligned.
py::tuple fill_packed_arrays(const py::array& values,
                             const ArrayOf<std::int64_t>& documents,
                             const ArrayOf<std::int64_t>& samples,
                             const ArrayOf<std::int64_t>& begins,
                             const ArrayOf<std::int64_t>& lengths,
                             const ArrayOf<std::int64_t>& offsets,
                             std::uint32_t capacity, std::int64_t pad_token) {
  const PackedRows rows = rows_of(span_of(samples), span_of(begins),
                                  span_of(lengths), span_of(offsets));
  const std::vector<py::ssize_t> shape = {static_cast<py::ssize_t>(rows.rows()),
                                          capacity};
  py::array tokens(values.dtype(), shape);
  py::array_t<std::int32_t> segment_ids(shape);
  py::array_t<std::int32_t> positions(shape);
  py::array_t<std::int64_t> labels(shape);
  const auto entries = static_cast<std::size_t>(labels.size());
  const DocumentTokens from = {
      .dtype = dtype_of(values),
      .values = {static_cast<const std::byte*>(values.data()),
                 static_cast<std::size_t>(values.nbytes())},
      .offsets = span_of(documents)};
  const PackedArrays into = {
      .tokens = {static_cast<std::byte*>(tokens.mutable_data()),
                 static_cast<std::size_t>(tokens.nbytes())},
      .segment_ids = {segment_ids.mutable_data(), entries},
      .positions = {positions.mutable_data(), entries},
      .labels = {labels.mutable_data(), entries}};
  const SequenceBounds bounds = value_or_raise([&] {
    const GilReleased unlocked;
    return fill_packed(from, rows, capacity, pad_token, into);
  }());
  return py::make_tuple(tokens, segment_ids, positions, labels,
                        array_of<std::int32_t>(bounds.cu_seqlens),
                        bounds.max_seqlen);
}

/// (group_of, costs): int64 by item, and float64 of shape (micro_batches,
/// ranks).
py::tuple arrays_of(const BalancedDeal& deal, std::uint32_t ranks) {
  const auto shape = static_cast<py::ssize_t>(ranks);
  const auto groups = static_cast<py::ssize_t>(deal.costs.size());
  return py::make_tuple(
      array_of<std::int64_t>(deal.group_of),
      array_of<double>(deal.costs).reshape({groups / shape, shape}));
}

py::tuple balance_costs(const ArrayOf<double>& costs, std::uint32_t ranks,
                        std::uint32_t micro_batches, bool equal_counts) {
  const auto of_items = span_of(costs);
  const BalancedDeal deal = value_or_raise([&] {
    const GilReleased unlocked;
    return balance(of_items, {.ranks = ranks,
                              .micro_batches = micro_batches,
                              .equal_counts = equal_counts});
  }());
  return arrays_of(deal, ranks);
}

py::tuple balance_costs_within(const ArrayOf<double>& costs,
                               const ArrayOf<std::uint64_t>& sizes,
                               const ArrayOf<std::uint32_t>& groups,
                               std::uint64_t capacity, std::uint64_t most_items,
                               std::uint32_t ranks,
                               std::uint32_t micro_batches) {
  const BudgetedItems items = {.costs = span_of(costs),
                               .sizes = span_of(sizes),
                               .groups = span_of(groups),
                               .capacity = capacity,
                               .most_items = most_items};
  const BalancedDeal deal = value_or_raise([&] {
    const GilReleased unlocked;
    return balance_within(items,
                          {.ranks = ranks, .micro_batches = micro_batches});
  }());
  return arrays_of(deal, ranks);
}

/// (samples, ends): int64; the samples by place in the window, and the end of
/// each micro-batch among them. `buckets` may be empty.
py::tuple fill_budgeted_steps(const ArrayOf<std::uint64_t>& lengths,
                              const ArrayOf<std::uint16_t>& buckets,
                              std::uint64_t max_tokens, bool counts_padding,
                              std::uint32_t max_samples,
                              std::uint64_t micro_batches, bool is_last,
                              bool shuffles, std::uint64_t seed,
                              std::uint64_t stream) {
  const TokenBudgetOptions options = {
      .max_tokens = max_tokens,
      .count = counts_padding ? TokenCount::kPadded : TokenCount::kSum,
      .max_samples = max_samples,
      .micro_batches = micro_batches,
      .is_last = is_last,
      .shuffles = shuffles,
      .seed = seed,
      .stream = stream};
  const MeasuredSamples window = {.lengths = span_of(lengths),
                                  .buckets = span_of(buckets)};
  const BudgetedSteps steps = value_or_raise([&] {
    const GilReleased unlocked;
    return fill_steps(window, options);
  }());
  return py::make_tuple(array_of<std::int64_t>(steps.samples),
                        array_of<std::int64_t>(steps.ends));
}

}  // namespace

void bind_packing(py::module_& module) {
  module.def("pack", &pack_lengths, py::arg("lengths"), py::kw_only(),
             py::arg("capacity"), py::arg("method"), py::arg("bins"),
             py::arg("max_sequences"), py::arg("long_documents"));
  module.def("fill_packed", &fill_packed_arrays, py::arg("values"),
             py::arg("documents"), py::arg("samples"), py::arg("begins"),
             py::arg("lengths"), py::arg("offsets"), py::kw_only(),
             py::arg("capacity"), py::arg("pad_token"));
  module.def("balance", &balance_costs, py::arg("costs"), py::kw_only(),
             py::arg("ranks"), py::arg("micro_batches"),
             py::arg("equal_counts"));
  module.def("balance_within", &balance_costs_within, py::arg("costs"),
             py::kw_only(), py::arg("sizes"), py::arg("groups"),
             py::arg("capacity"), py::arg("most_items"), py::arg("ranks"),
             py::arg("micro_batches"));
  module.def("fill_steps", &fill_budgeted_steps, py::arg("lengths"),
             py::arg("buckets"), py::kw_only(), py::arg("max_tokens"),
             py::arg("counts_padding"), py::arg("max_samples"),
             py::arg("micro_batches"), py::arg("is_last"), py::arg("shuffles"),
             py::arg("seed"), py::arg("stream"));
}

}  // namespace leat
