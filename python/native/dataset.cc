#include "leat/engine/dataset.h"
#include "leat/engine/sample_reader.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "derivation.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"
#include "leat/base/hash.h"
#include "leat/dataset/derive.h"
#include "leat/engine/list_url.h"
#include "leat/engine/sources.h"
#include "leat/index/label_changes.h"
#include "listing_board.h"
#include "log.h"
#include "text.h"

namespace py = pybind11;

namespace leat {
namespace {

CatalogueOptions catalogue_options(const std::string& refresh) {
  CatalogueOptions options;
  options.refresh = value_or_raise(Refresh::parse(refresh));
  options.job = listing_board();
  return options;
}

template <class Function>
auto without_gil(const Function& function) {
  return value_or_raise([&] {
    const GilReleased unlocked;
    return function();
  }());
}

std::string text_of(const Catalogue& catalogue, std::size_t field,
                    SampleId sample) {
  switch (catalogue.fields()[field].kind) {
    case FieldKind::kInt64:
      return std::to_string(catalogue.int64(field, sample));
    case FieldKind::kFloat64:
      return std::to_string(catalogue.float64(field, sample));
    default:
      return std::string(catalogue.string(field, sample));
  }
}

py::dict fields_of(const Dataset& dataset) {
  py::dict fields;
  for (const FieldSpec& field : dataset.catalogue->fields()) {
    fields[str_of_message(field.name)] =
        py::str(std::string(to_string(field.kind)));
  }
  return fields;
}

/// The place of a field's bytes: the object's key, offset and length; None if
/// the sample lacks it.
std::optional<std::tuple<py::str, std::uint64_t, std::uint64_t>> range_of(
    const Dataset& dataset, const std::string& field, std::uint64_t sample) {
  const Catalogue& catalogue = *dataset.catalogue;
  const std::size_t index = catalogue.field_index(field);
  if (index == catalogue.fields().size() ||
      catalogue.fields()[index].kind != FieldKind::kBytes) {
    throw py::key_error("no such field of bytes");
  }
  if (sample >= catalogue.samples()) throw py::index_error("no such sample");
  const ByteRange range = catalogue.range(index, SampleId{sample});
  if (range.is_missing()) return std::nullopt;
  return std::tuple(str_of_name(catalogue.object(range.object).key),
                    range.offset, range.length_bytes);
}

/// Unix time; None if nobody knows.
std::optional<std::int64_t> listed_at(const Dataset& dataset) {
  if (dataset.listed_at == std::chrono::sys_seconds()) return std::nullopt;
  return dataset.listed_at.time_since_epoch().count();
}

/// Beyond this many objects their ETags take too long to compare.
constexpr std::uint64_t kMostVersions = 4'000'000;

/// Identifies the versions that the objects had as they were listed: their
/// ETags, which the catalogue's digest leaves out; of files, their lengths and
/// times. None if nobody knows them.
std::optional<std::string> listed_versions(const Dataset& dataset) {
  const Catalogue& catalogue = *dataset.catalogue;
  if (catalogue.etag_kind() == EtagKind::kNone) return std::nullopt;
  const GilReleased unlocked;
  Hasher128 hasher;
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    const ObjectView object =
        catalogue.object(ObjectIndex{static_cast<std::uint32_t>(i)});
    hasher.update(std::uint64_t{object.etag.size()});
    hasher.update(as_bytes(object.etag));
  }
  return hasher.digest().hex();
}

/// Like listed_versions(), if every node would list the same and there are not
/// too many objects; else None: the times of files are of a node's copy.
std::optional<std::string> versions(const Dataset& dataset) {
  const Catalogue& catalogue = *dataset.catalogue;
  if (catalogue.etag_kind() == EtagKind::kFile ||
      catalogue.objects() > kMostVersions) {
    return std::nullopt;
  }
  return listed_versions(dataset);
}

std::optional<Dataset> earlier(const Dataset& now, const std::string& digest) {
  const GilReleased unlocked;
  return earlier_dataset(now, digest, process_env());
}

using Names = std::vector<std::string>;

/// include=, exclude= and extensions=.
using Chosen = std::tuple<Names, Names, Names>;

Selection selection_of(const Chosen& chosen) {
  return {.patterns = {},
          .include = std::get<0>(chosen),
          .exclude = std::get<1>(chosen),
          .extensions = std::get<2>(chosen)};
}

Dataset open(const Names& sources, const StoreOptions& store,
             const std::string& refresh,
             const std::optional<std::string>& inventory, const Chosen& chosen,
             const Names& classes) {
  CatalogueOptions options = catalogue_options(refresh);
  options.index.classes = classes;
  const Selection selection = selection_of(chosen);
  const bool is_one = sources.size() == 1 && is_plain_place(sources.front());
  // Listing a large bucket takes minutes, and Ctrl-C must end it.
  return run_interruptibly([&](const std::stop_token& stop) -> Result<Dataset> {
    if (!inventory) {
      return open_sources(sources, selection, store, options, process_env(),
                          stop);
    }
    if (!is_one || !selection.is_usual()) {
      return Error(ErrorCode::kInvalidArgument,
                   "inventory= goes with one folder, and not with include=, "
                   "exclude= or extensions=");
    }
    return open_dataset_of_inventory(sources.front(), *inventory, store,
                                     options, process_env(), stop);
  });
}

/// A column of a manifest: name, kind, values and, for byte fields, sizes,
/// offsets and lengths, each or None.
ManifestColumn column_of(const py::tuple& given) {
  ManifestColumn column;
  column.field.name = py::cast<std::string>(given[0]);
  const auto kind = py::cast<std::string>(given[1]);
  if (kind == "int64") {
    column.field.kind = FieldKind::kInt64;
    column.ints = py::cast<std::vector<std::int64_t>>(given[2]);
  } else if (kind == "float64") {
    column.field.kind = FieldKind::kFloat64;
    column.floats = py::cast<std::vector<double>>(given[2]);
  } else {
    column.field.kind =
        kind == "string" ? FieldKind::kString : FieldKind::kBytes;
    // A tuple has the texts, and of which of them each row has the number.
    const bool is_shared = py::isinstance<py::tuple>(given[2]);
    const py::tuple both =
        is_shared ? py::cast<py::tuple>(given[2]) : py::make_tuple(given[2]);
    column.texts = names_of_strs(both[0]);
    if (is_shared) {
      column.text_numbers = py::cast<std::vector<std::uint32_t>>(both[1]);
    }
  }
  if (!given[3].is_none()) {
    column.sizes = py::cast<std::vector<std::uint64_t>>(given[3]);
  }
  if (!given[4].is_none()) {
    column.offsets = py::cast<std::vector<std::uint64_t>>(given[4]);
    column.lengths = py::cast<std::vector<std::uint64_t>>(given[5]);
  }
  return column;
}

Dataset open_rows(const Names& places, const StoreOptions& store,
                  std::uint64_t rows, const py::sequence& names,
                  const std::vector<py::tuple>& columns,
                  std::vector<std::string> classes,
                  const std::string& description, const std::string& refresh) {
  Manifest manifest{.rows = rows,
                    .columns = {},
                    .classes = std::move(classes),
                    .names = names_of_strs(names)};
  for (const py::tuple& column : columns) {
    manifest.columns.push_back(column_of(column));
  }
  const CatalogueOptions options = catalogue_options(refresh);
  return run_interruptibly([&](const std::stop_token& stop) {
    return open_manifest(
        places, store, [&] { return manifest; }, description, options,
        process_env(), stop);
  });
}

/// `make(is_stopped)` gives rows, names, columns and classes, and is asked for
/// them only where no catalogue is kept.
Dataset open_rows_made(const Names& places, const StoreOptions& store,
                       const py::function& make, const std::string& description,
                       const std::string& refresh) {
  const CatalogueOptions options = catalogue_options(refresh);
  return run_interruptibly([&](const std::stop_token& stop) {
    const auto made = [&]() -> Result<Manifest> {
      const GilHeld locked;
      try {
        const py::tuple all =
            make(py::cpp_function([stop] { return stop.stop_requested(); }));
        Manifest manifest;
        manifest.rows = py::cast<std::uint64_t>(all[0]);
        manifest.names = names_of_strs(all[1]);
        for (const py::handle column : all[2]) {
          manifest.columns.push_back(column_of(py::cast<py::tuple>(column)));
        }
        manifest.classes = names_of_strs(all[3]);
        return manifest;
      } catch (const py::error_already_set& raised) {
        return error_of(raised);
      }
    };
    return open_manifest(places, store, made, description, options,
                         process_env(), stop);
  });
}

/// The places of its objects: several where their keys begin with numbers.
Names places_of_dataset(const Dataset& dataset) {
  if (dataset.parts.empty()) return {dataset.url};
  Names places;
  for (const StorePlace& place : dataset.parts) places.push_back(place.url);
  return places;
}

/// The source, the ETag, the offset and the length of a range.
using SourceRange =
    std::tuple<py::str, py::bytes, std::uint64_t, std::uint64_t>;

/// Names an object that is made of parts of others.
py::str derived_key_of(const py::str& source, const py::bytes& etag,
                       std::uint64_t offset, std::uint64_t length_bytes,
                       std::uint64_t notes_offset, std::uint64_t notes_bytes,
                       std::uint64_t size_bytes, std::string part,
                       const std::vector<SourceRange>& also) {
  std::vector<DerivedKey::Range> ranges;
  for (const auto& [of, tag, at, length] : also) {
    ranges.push_back({name_of_str(of), tag, at, length});
  }
  return str_of_name(DerivedKey{.source = name_of_str(source),
                                .etag = etag,
                                .offset = offset,
                                .length_bytes = length_bytes,
                                .notes_offset = notes_offset,
                                .notes_bytes = notes_bytes,
                                .size_bytes = size_bytes,
                                .part = std::move(part),
                                .also = std::move(ranges)}
                         .text());
}

/// Frees a reader while others run: threads of its store may call Python.
struct FreeUnlocked {
  void operator()(SampleReader* reader) const {
    const GilReleased unlocked;
    delete reader;
  }
};
using ReaderHolder = std::unique_ptr<SampleReader, FreeUnlocked>;

Dataset open_windows(const Names& sources, const StoreOptions& store,
                     const std::string& dtype, std::uint64_t seq_len,
                     std::uint64_t stride, const std::string& refresh,
                     const Chosen& chosen, std::optional<std::uint64_t> eos) {
  const TokenWindows windows =
      value_or_raise(token_windows(dtype, seq_len, stride, eos));
  const CatalogueOptions options = catalogue_options(refresh);
  return run_interruptibly([&](const std::stop_token& stop) {
    return open_token_sources(sources, selection_of(chosen), store, windows,
                              options, process_env(), stop);
  });
}

Dataset open_as_of(const std::string& url, const std::string& snapshot,
                   const StoreOptions& store) {
  return run_interruptibly([&](const std::stop_token& stop) {
    return open_dataset_as_of(url, snapshot, store, process_env(), stop);
  });
}

Dataset select(
    const Dataset& from,
    const py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>&
        which) {
  std::vector<SampleId> samples(static_cast<std::size_t>(which.size()));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].value = static_cast<std::uint64_t>(which.data()[i]);
  }
  return without_gil([&] { return select_samples(from, samples); });
}

Dataset join(const std::vector<Dataset>& datasets,
             const std::string& part_field) {
  Dataset joined =
      without_gil([&] { return join_datasets(datasets, part_field); });
  deliver_log();
  return joined;
}

/// The values of a field that the catalogue holds: an array, or a list of str.
py::object column(const Dataset& dataset, const std::string& name) {
  const Catalogue& catalogue = *dataset.catalogue;
  const std::size_t field = catalogue.field_index(name);
  if (field == catalogue.fields().size()) throw py::key_error(name);
  const std::uint64_t rows = catalogue.samples();
  const auto fill = [&](auto array, const auto& value_of) -> py::object {
    auto* const values = array.mutable_data();
    for (std::uint64_t i = 0; i < rows; ++i) values[i] = value_of(SampleId{i});
    return array;
  };
  const auto size = static_cast<py::ssize_t>(rows);
  switch (catalogue.fields()[field].kind) {
    case FieldKind::kInt64:
      return fill(py::array_t<std::int64_t>(size),
                  [&](SampleId i) { return catalogue.int64(field, i); });
    case FieldKind::kFloat64:
      return fill(py::array_t<double>(size),
                  [&](SampleId i) { return catalogue.float64(field, i); });
    case FieldKind::kBytes:
      return fill(py::array_t<std::int64_t>(size), [&](SampleId i) {
        const ByteRange range = catalogue.range(field, i);
        return range.is_missing()
                   ? std::int64_t{-1}
                   : static_cast<std::int64_t>(range.length_bytes);
      });
    case FieldKind::kString:
      break;
  }
  py::list texts(size);
  for (std::uint64_t i = 0; i < rows; ++i) {
    texts[i] = str_of_name(catalogue.string(field, {i}));
  }
  return texts;
}

/// The fields of a sample that the catalogue holds.
py::dict scalars(const Dataset& dataset, std::uint64_t sample) {
  const Catalogue& catalogue = *dataset.catalogue;
  const SampleId id{sample};
  py::dict values;
  for (std::size_t f = 0; f < catalogue.fields().size(); ++f) {
    const py::str name = str_of_message(catalogue.fields()[f].name);
    switch (catalogue.fields()[f].kind) {
      case FieldKind::kBytes:
        break;
      case FieldKind::kInt64:
        values[name] = catalogue.int64(f, id);
        break;
      case FieldKind::kFloat64:
        values[name] = catalogue.float64(f, id);
        break;
      case FieldKind::kString:
        values[name] = str_of_name(catalogue.string(f, id));
        break;
    }
  }
  return values;
}

/// For each sample, which share of the whole it belongs to.
py::array_t<std::int64_t> shares(const Dataset& dataset, std::uint64_t seed,
                                 const std::vector<double>& ends,
                                 const std::optional<std::string>& by) {
  const Catalogue& catalogue = *dataset.catalogue;
  const std::size_t field =
      by ? catalogue.field_index(*by) : catalogue.fields().size();
  if (by && (field == catalogue.fields().size() ||
             catalogue.fields()[field].kind == FieldKind::kBytes)) {
    throw py::key_error(*by);
  }
  py::array_t<std::int64_t> found(
      static_cast<py::ssize_t>(catalogue.samples()));
  for (std::uint64_t i = 0; i < catalogue.samples(); ++i) {
    found.mutable_data()[i] = static_cast<std::int64_t>(share_of(
        by ? text_of(catalogue, field, {i}) : std::string(catalogue.key({i})),
        seed, ends));
  }
  return found;
}

py::bytes read(SampleReader& reader, std::size_t field, std::uint64_t sample) {
  const Buffer bytes = run_interruptibly([&](const std::stop_token& stop) {
    return reader.read(field, SampleId{sample}, stop);
  });
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

py::bytes read_part(SampleReader& reader, std::size_t field,
                    std::uint64_t sample, std::uint64_t offset,
                    std::uint64_t length_bytes) {
  const Buffer bytes = run_interruptibly([&](const std::stop_token& stop) {
    return reader.read_part(field, SampleId{sample}, offset, length_bytes,
                            stop);
  });
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The key, the size and the ETag of each object below a folder.
std::vector<std::tuple<py::str, std::uint64_t, py::bytes>> listed(
    const std::string& url, const StoreOptions& store) {
  const auto objects = run_interruptibly([&](const std::stop_token& stop) {
    return list_url(url, store, process_env(), stop);
  });
  std::vector<std::tuple<py::str, std::uint64_t, py::bytes>> found;
  for (const ObjectInfo& object : objects) {
    found.emplace_back(str_of_name(object.key), object.size_bytes,
                       py::bytes(object.etag));
  }
  return found;
}

py::bytes read_whole(const std::string& url, const StoreOptions& store,
                     std::uint64_t most_bytes) {
  const Buffer bytes = run_interruptibly([&](const std::stop_token& stop) {
    return read_url(url, store, most_bytes, process_env(), stop);
  });
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void bind_dataset(py::module_& module) {
  using OfScheme = std::map<std::string, std::string>;
  module.def("scheme_options", [] {
    std::vector<std::pair<std::string, std::string>> all;
    for (const SchemeOption& option : scheme_options()) {
      all.emplace_back(option.name, option.doc);
    }
    return all;
  });
  py::class_<StoreOptions>(module, "StoreOptions")
      .def(py::init([](std::optional<std::string> endpoint_url,
                       bool no_sign_request, bool requester_pays,
                       std::string credential_helper, double patience,
                       bool no_hedge, const OfScheme& of_scheme) {
             StoreOptions options;
             options.endpoint_url = endpoint_url.value_or("");
             options.of_scheme.insert(of_scheme.begin(), of_scheme.end());
             options.no_sign_request = no_sign_request;
             options.requester_pays = requester_pays;
             options.credential_helper = std::move(credential_helper);
             options.patience = from_seconds(patience);
             options.no_hedge = no_hedge;
             return options;
           }),
           py::kw_only(), py::arg("endpoint_url") = py::none(),
           py::arg("no_sign_request") = false,
           py::arg("requester_pays") = false, py::arg("credential_helper") = "",
           py::arg("patience") = 300.0, py::arg("no_hedge") = false,
           py::arg("of_scheme") = OfScheme())
      .def(
          "derive_with",
          [](StoreOptions& options, const py::function& function) {
            options.derivation = derivation_of(function);
          },
          py::arg("function"));

  py::class_<Dataset>(module, "Dataset")
      .def(py::init(&open), py::arg("sources"), py::arg("store"),
           py::arg("refresh"), py::arg("inventory"), py::arg("chosen"),
           py::arg("classes") = Names())
      .def_readonly("url", &Dataset::url)
      .def_property_readonly("places", &places_of_dataset)
      .def_readonly("catalogue_source", &Dataset::catalogue_source)
      .def_property_readonly("listed_at", &listed_at)
      .def("earlier", &earlier, py::arg("digest"))
      .def_property_readonly(
          "samples", [](const Dataset& d) { return d.catalogue->samples(); })
      .def_property_readonly(
          "objects", [](const Dataset& d) { return d.catalogue->objects(); })
      .def_property_readonly(
          "bytes", [](const Dataset& d) { return d.catalogue->total_bytes(); })
      .def_property_readonly("fields", &fields_of)
      .def_property_readonly("classes",
                             [](const Dataset& d) {
                               return strs_of_names(d.catalogue->classes());
                             })
      .def_property_readonly("has_shards",
                             [](const Dataset& d) {
                               return d.catalogue->layout() == Layout::kShards;
                             })
      .def_property_readonly(
          "digest",
          [](const Dataset& d) { return d.catalogue->digest().hex(); })
      .def_property_readonly("versions", &versions)
      .def_property_readonly("listed_versions", &listed_versions)
      .def("key",
           [](const Dataset& d, std::uint64_t sample) {
             if (sample >= d.catalogue->samples()) {
               throw py::index_error("no such sample");
             }
             return str_of_name(d.catalogue->key(SampleId{sample}));
           })
      .def("scalars", &scalars, py::arg("sample"))
      .def("has_bytes",
           [](const Dataset& d, std::size_t field, std::uint64_t sample) {
             return !d.catalogue->range(field, SampleId{sample}).is_missing();
           })
      .def("range", &range_of, py::arg("field"), py::arg("sample"))
      .def("column", &column, py::arg("name"))
      .def("shares", &shares, py::arg("seed"), py::arg("ends"), py::arg("by"))
      .def("select", &select, py::arg("samples"))
      .def(
          "with_classes",
          [](const Dataset& dataset, const Names& classes) {
            return without_gil([&] { return with_classes(dataset, classes); });
          },
          py::arg("classes"))
      .def_static("tokens", &open_windows, py::arg("sources"), py::arg("store"),
                  py::arg("dtype"), py::arg("seq_len"), py::arg("stride"),
                  py::arg("refresh"), py::arg("chosen"), py::arg("eos"))
      .def_static("join", &join, py::arg("datasets"),
                  py::arg("part_field") = "")
      .def_static("as_of", &open_as_of, py::arg("url"), py::arg("snapshot"),
                  py::arg("store"))
      .def_static("from_rows", &open_rows, py::arg("places"), py::arg("store"),
                  py::arg("rows"), py::arg("names"), py::arg("columns"),
                  py::arg("classes"), py::arg("description"),
                  py::arg("refresh"))
      .def_static("from_rows_made", &open_rows_made, py::arg("places"),
                  py::arg("store"), py::arg("make"), py::arg("description"),
                  py::arg("refresh"));

  py::class_<SampleReader, ReaderHolder>(module, "SampleReader")
      .def(py::init([](const Dataset& dataset) {
             return ReaderHolder(
                 value_or_raise(SampleReader::open(dataset, process_env()))
                     .release());
           }),
           py::arg("dataset"))
      .def("read", &read, py::arg("field"), py::arg("sample"))
      .def("read_part", &read_part, py::arg("field"), py::arg("sample"),
           py::arg("offset"), py::arg("length_bytes"))
      .def(
          "etag",
          [](const SampleReader& reader, std::size_t field,
             std::uint64_t sample) {
            return py::bytes(reader.etag(field, SampleId{sample}));
          },
          py::arg("field"), py::arg("sample"));

  module.def("derived_key", &derived_key_of, py::kw_only(), py::arg("source"),
             py::arg("etag"), py::arg("offset"), py::arg("length_bytes"),
             py::arg("notes_offset"), py::arg("notes_bytes"),
             py::arg("size_bytes"), py::arg("part"),
             py::arg("also") = std::vector<SourceRange>());

  module.def("label_changes", &label_changes, py::arg("before"),
             py::arg("now"));
  module.def("list_url", &listed, py::arg("url"), py::arg("store"));
  module.def("read_url", &read_whole, py::arg("url"), py::arg("store"),
             py::arg("most_bytes"));
}

}  // namespace leat
