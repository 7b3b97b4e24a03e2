#include "leat/index/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

/// More than the header of any one-dimensional array.
constexpr std::uint64_t kMostHeaderBytes = 4096;

struct DtypeName {
  std::string_view name;
  NpyKind kind;
  std::uint32_t item_bytes;
};
constexpr std::array kDtypes = {
    DtypeName{"uint8", NpyKind::kUnsigned, 1},
    DtypeName{"uint16", NpyKind::kUnsigned, 2},
    DtypeName{"uint32", NpyKind::kUnsigned, 4},
    DtypeName{"uint64", NpyKind::kUnsigned, 8},
    DtypeName{"int8", NpyKind::kSigned, 1},
    DtypeName{"int16", NpyKind::kSigned, 2},
    DtypeName{"int32", NpyKind::kSigned, 4},
    DtypeName{"int64", NpyKind::kSigned, 8},
    DtypeName{"float32", NpyKind::kFloat, 4},
    DtypeName{"float64", NpyKind::kFloat, 8},
};

std::string_view name_of(NpyKind kind, std::uint32_t item_bytes) {
  for (const DtypeName& dtype : kDtypes) {
    if (dtype.kind == kind && dtype.item_bytes == item_bytes) return dtype.name;
  }
  return "another type";
}

/// Whether a number from 0 may be an item.
bool is_item(const DtypeName& dtype, std::uint64_t number) {
  if (dtype.kind == NpyKind::kFloat) return false;
  const std::uint32_t bits =
      8 * dtype.item_bytes - (dtype.kind == NpyKind::kSigned ? 1 : 0);
  return bits == 64 || number >> bits == 0;
}

/// How much is looked through at a time for ends of documents, and in which
/// parts that is read. The first is a whole number of items.
constexpr std::uint64_t kScannedBytes = 64 << 20;
constexpr std::uint64_t kPartBytes = 8 << 20;

/// Reads a range by several requests at once.
Result<void> read_in_parts(Store& store, const ObjectId& object,
                           std::uint64_t offset, std::span<std::byte> into,
                           const std::stop_token& stop) {
  Mutex mutex;
  CondVar changed;
  std::size_t left = (into.size() + kPartBytes - 1) / kPartBytes;
  Result<void> all;
  for (std::size_t at = 0; at < into.size(); at += kPartBytes) {
    ReadRequest request;
    request.object = object;
    request.offset = offset + at;
    request.into =
        into.subspan(at, std::min<std::size_t>(kPartBytes, into.size() - at));
    store.read(std::move(request), stop, [&](Result<void> result) {
      const MutexLock lock(mutex);
      if (!result && all) all = std::move(result);
      --left;
      changed.notify_all();
    });
  }
  MutexLock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  return all;
}

/// The bytes of a file that are tokens.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Cuts the files of one store into windows.
class Cutter {
 public:
  Cutter(Store& store, std::string_view prefix, const TokenWindows& windows)
      : store_(store),
        prefix_(prefix),
        windows_(windows),
        writer_(Layout::kShards, etag_kind_of(store)),
        tokens_(writer_.add_field({"tokens", FieldKind::kBytes})) {}

  Result<void> add(const ObjectInfo& file, const std::stop_token& stop) {
    Result<Span> span = span_of(file, stop);
    if (!span) {
      return std::move(span).error().while_doing(
          store_.url_of(key_in_store(prefix_, file.key)));
    }
    const ObjectIndex object = writer_.add_object(
        {.key = file.key, .etag = file.etag, .size_bytes = file.size_bytes});
    if (windows_.eos) return add_documents(file, object, *span, stop);
    const std::uint64_t window = windows_.seq_len * windows_.item_bytes;
    const std::uint64_t step = windows_.stride * windows_.item_bytes;
    std::uint64_t begin = span->begin;
    for (std::uint64_t i = 0; span->end - begin >= window; ++i, begin += step) {
      writer_.add_sample(fmt::format("{}:{}", file.key, i));
      writer_.set_range(tokens_, {object, begin, window});
      if (span->end - begin < step) break;
    }
    return {};
  }

  Result<Buffer> finish() && {
    if (writer_.samples() != 0) return std::move(writer_).finish();
    return not_found("no .bin or .npy file holds {} tokens", windows_.seq_len);
  }

 private:
  /// Reads the file, and cuts it behind each end of a document.
  Result<void> add_documents(const ObjectInfo& file, ObjectIndex object,
                             Span span, const std::stop_token& stop) {
    Buffer bytes(std::min<std::uint64_t>(kScannedBytes, span.end - span.begin));
    const ObjectId id{.key = key_in_store(prefix_, file.key),
                      .etag = file.etag};
    std::uint64_t begin = span.begin;
    std::uint64_t windows = 0;
    for (std::uint64_t at = span.begin; at < span.end; at += bytes.size()) {
      const auto part = bytes.span().first(
          std::min<std::uint64_t>(bytes.size(), span.end - at));
      LEAT_TRY_VOID(read_in_parts(store_, id, at, part, stop));
      for (std::size_t i = 0; i < part.size(); i += windows_.item_bytes) {
        if (item_at(part.subspan(i)) != *windows_.eos) continue;
        const std::uint64_t end = at + i + windows_.item_bytes;
        add_document(file, object, {begin, end}, windows);
        begin = end;
      }
    }
    if (begin < span.end)
      add_document(file, object, {begin, span.end}, windows);
    return {};
  }

  void add_document(const ObjectInfo& file, ObjectIndex object, Span document,
                    std::uint64_t& windows) {
    const std::uint64_t window = windows_.seq_len * windows_.item_bytes;
    const std::uint64_t step = windows_.stride * windows_.item_bytes;
    for (std::uint64_t begin = document.begin;; begin += step) {
      const std::uint64_t left = document.end - begin;
      writer_.add_sample(fmt::format("{}:{}", file.key, windows++));
      writer_.set_range(tokens_, {object, begin, std::min(window, left)});
      if (left <= window) return;
    }
  }

  /// The first number of `bytes`.
  std::uint64_t item_at(std::span<const std::byte> bytes) const {
    std::uint64_t item = 0;
    for (std::uint32_t i = 0; i < windows_.item_bytes; ++i) {
      item |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    }
    return item;
  }

  Result<Span> span_of(const ObjectInfo& file, const std::stop_token& stop) {
    if (file.key.ends_with(".npy")) return span_of_npy(file, stop);
    if (file.size_bytes % windows_.item_bytes != 0) {
      return invalid(
          "{} bytes are no whole number of {}; give the dtype= that it was "
          "written with",
          file.size_bytes, dtype());
    }
    return Span{0, file.size_bytes};
  }

  Result<Span> span_of_npy(const ObjectInfo& file,
                           const std::stop_token& stop) {
    Buffer head(std::min(file.size_bytes, kMostHeaderBytes));
    if (head.size() != 0) {  // A store has no empty reads.
      ReadRequest request;
      request.object = {.key = key_in_store(prefix_, file.key),
                        .etag = file.etag};
      request.into = head.span();
      LEAT_TRY_VOID(read_range(store_, std::move(request), stop));
    }
    LEAT_TRY(const NpyHeader header,
             read_npy_header(head.span(), file.size_bytes));
    if (header.shape.size() != 1) {
      return invalid("the array has {} dimensions, and tokens have one",
                     header.shape.size());
    }
    if (header.kind != windows_.kind ||
        header.item_bytes != windows_.item_bytes) {
      return invalid("the array is of {}, not {}: give that as dtype=",
                     name_of(header.kind, header.item_bytes), dtype());
    }
    return Span{header.data_offset, file.size_bytes};
  }

  std::string_view dtype() const {
    return name_of(windows_.kind, windows_.item_bytes);
  }

  Store& store_;
  const std::string_view prefix_;
  const TokenWindows windows_;
  CatalogueWriter writer_;
  const std::size_t tokens_;
};

}  // namespace

Result<TokenWindows> token_windows(std::string_view dtype,
                                   std::uint64_t seq_len, std::uint64_t stride,
                                   std::optional<std::uint64_t> eos) {
  // A window is a range of an object, at most 2^48 bytes.
  if (seq_len == 0 || seq_len >= std::uint64_t{1} << 40) {
    return invalid("seq_len={}; it is at least 1 and below 2^40", seq_len);
  }
  if (stride > seq_len) {
    return invalid(
        "stride={} is more than seq_len={}, so tokens between two windows "
        "would be left out; give at most seq_len",
        stride, seq_len);
  }
  std::string names;
  for (const DtypeName& known : kDtypes) {
    if (known.name == dtype) {
      if (eos && !is_item(known, *eos)) {
        return invalid("eos={} is no number of {}", *eos, dtype);
      }
      return TokenWindows{known.kind, known.item_bytes, seq_len,
                          stride == 0 ? seq_len : stride, eos};
    }
    names += names.empty() ? "" : ", ";
    names += known.name;
  }
  return invalid("dtype={}; it is one of {}", dtype, names);
}

Selection selection_of_tokens(Selection selection) {
  if (selection.extensions.empty()) selection.extensions = {".bin", ".npy"};
  return selection;
}

Result<BuiltCatalogue> build_token_windows(Store& store,
                                           std::string_view prefix,
                                           const TokenWindows& windows,
                                           const IndexOptions& options,
                                           const std::stop_token& stop) {
  IndexOptions of_tokens = options;
  of_tokens.selection = selection_of_tokens(options.selection);
  IndexProgress progress;
  LEAT_TRY(const std::vector<ObjectInfo> files,
           find_objects(store, prefix, of_tokens, progress, stop));
  Cutter cutter(store, prefix, windows);
  for (const ObjectInfo& each : files) LEAT_TRY_VOID(cutter.add(each, stop));
  LEAT_TRY(Buffer bytes, std::move(cutter).finish());
  return BuiltCatalogue{.bytes = std::move(bytes), .note = ""};
}

}  // namespace leat
