// Tables of samples: batches of rows from Python's readers to a catalogue.
#include "leat/engine/table.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "derivation.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"
#include "leat/base/env.h"
#include "leat/engine/dataset.h"
#include "leat/engine/stores.h"
#include "leat/index/path_rules.h"

namespace py = pybind11;

namespace leat {
namespace {

using Int64s = py::array_t<std::int64_t, py::array::c_style>;
using Float64s = py::array_t<double, py::array::c_style>;

/// Texts of a batch: a list of str, or Arrow's offsets and bytes.
class Texts {
 public:
  explicit Texts(const py::handle& given) {
    if (!py::isinstance<py::tuple>(given)) {
      texts_ = py::cast<std::vector<std::string>>(given);
      return;
    }
    const auto both = py::cast<py::tuple>(given);
    ends_ = py::cast<Int64s>(both[0]);
    bytes_ = py::cast<py::array_t<std::uint8_t, py::array::c_style>>(both[1]);
    for (py::ssize_t i = 1; i < ends_.size(); ++i) {
      if (ends_.at(i - 1) > ends_.at(i)) throw py::value_error("offsets fall");
    }
    if (ends_.size() == 0 || ends_.at(0) < 0 ||
        ends_.at(ends_.size() - 1) > bytes_.size()) {
      throw py::value_error("offsets outside of their bytes");
    }
  }

  std::size_t size() const {
    return is_arrow() ? static_cast<std::size_t>(ends_.size() - 1)
                      : texts_.size();
  }
  std::string_view at(std::size_t i) const {
    if (!is_arrow()) return texts_[i];
    const auto row = static_cast<py::ssize_t>(i);
    const std::int64_t begin = ends_.data()[row];
    return {reinterpret_cast<const char*>(bytes_.data()) + begin,
            static_cast<std::size_t>(ends_.data()[row + 1] - begin)};
  }

 private:
  bool is_arrow() const { return ends_.size() != 0; }

  std::vector<std::string> texts_;
  Int64s ends_;
  py::array_t<std::uint8_t, py::array::c_style> bytes_;
};

/// The values of a field in a batch.
struct BatchColumn {
  std::optional<Texts> texts;
  std::optional<Int64s> ints;
  std::optional<Float64s> floats;
  std::optional<Int64s> sizes;
  std::optional<Int64s> offsets;
  std::optional<Int64s> lengths;
};

PathRest rest_of(const std::string& form) {
  if (form == "any") return PathRest::kAny;
  if (form == "plain path") return PathRest::kPlainPath;
  if (form == "plain URL") return PathRest::kPlainUrl;
  return PathRest::kUnknown;
}

std::uint64_t at(const std::optional<Int64s>& numbers, std::size_t row) {
  return numbers ? static_cast<std::uint64_t>(
                       numbers->data()[static_cast<py::ssize_t>(row)])
                 : 0;
}

/// Takes batches of rows. `ask(path, row)` gives the place of a path, its key
/// there, and a rule for others (prefix, form) or None; rows count from 1.
class RowCollector {
 public:
  RowCollector(const std::vector<
                   std::tuple<std::string, std::string, bool, bool>>& fields,
               py::function ask, const std::vector<std::string>& unknown)
      : ask_(std::move(ask)) {
    for (const auto& [name, kind, has_sizes, has_parts] : fields) {
      fields_.push_back({.spec = {name, kind_of(kind)},
                         .has_sizes = has_sizes,
                         .has_parts = has_parts});
    }
    for (const std::string& prefix : unknown) rules_.learn({.prefix = prefix});
    builder_.emplace(fields_);
  }

  void add(std::size_t rows, const std::vector<py::object>& given) {
    std::vector<BatchColumn> columns;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      columns.push_back(column_of(fields_[i].spec.kind, given.at(i), rows));
    }
    for (std::size_t row = 0; row < rows; ++row) add_paths(columns, row);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      add_values(i, columns[i], rows);
    }
    rows_ += rows;
  }

  void renumber(std::size_t field, const std::vector<std::int64_t>& numbers) {
    builder_->renumber(field, numbers);
  }
  void set_classes(std::vector<std::string> classes) {
    builder_->set_classes(std::move(classes));
  }
  std::uint64_t rows() const { return rows_; }

  /// Ends its use.
  ManifestBuilder take() {
    if (!builder_) throw py::value_error("these rows were taken before");
    ManifestBuilder taken = *std::move(builder_);
    builder_.reset();
    return taken;
  }

 private:
  static FieldKind kind_of(const std::string& kind) {
    if (kind == "int64") return FieldKind::kInt64;
    if (kind == "float64") return FieldKind::kFloat64;
    return kind == "string" ? FieldKind::kString : FieldKind::kBytes;
  }

  static std::optional<Int64s> numbers_of(const py::handle& given,
                                          std::size_t rows) {
    if (given.is_none()) return std::nullopt;
    auto numbers = py::cast<Int64s>(given);
    check_rows(static_cast<std::size_t>(numbers.size()), rows);
    return numbers;
  }

  static void check_rows(std::size_t found, std::size_t rows) {
    if (found != rows) throw py::value_error("columns of unequal lengths");
  }

  static BatchColumn column_of(FieldKind kind, const py::object& given,
                               std::size_t rows) {
    BatchColumn column;
    switch (kind) {
      case FieldKind::kInt64:
        column.ints = numbers_of(given, rows);
        break;
      case FieldKind::kFloat64:
        column.floats = py::cast<Float64s>(given);
        check_rows(static_cast<std::size_t>(column.floats->size()), rows);
        break;
      case FieldKind::kString:
        column.texts.emplace(given);
        check_rows(column.texts->size(), rows);
        break;
      case FieldKind::kBytes: {
        const auto all = py::cast<py::tuple>(given);
        column.texts.emplace(all[0]);
        check_rows(column.texts->size(), rows);
        column.sizes = numbers_of(all[1], rows);
        column.offsets = numbers_of(all[2], rows);
        column.lengths = numbers_of(all[3], rows);
        break;
      }
    }
    return column;
  }

  void add_paths(const std::vector<BatchColumn>& columns, std::size_t row) {
    bool is_first = true;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (fields_[i].spec.kind != FieldKind::kBytes) continue;
      const BatchColumn& column = columns[i];
      const auto [place, key] = place_of(column.texts->at(row), row);
      builder_->add_value(i, {.place = place,
                              .key = key,
                              .size_bytes = at(column.sizes, row),
                              .offset = at(column.offsets, row),
                              .length_bytes = at(column.lengths, row)});
      if (is_first && fields_[i].has_parts) {
        name_.assign(key);
        name_ += ':';
        name_ += std::to_string(at(column.offsets, row));
        builder_->add_name(name_);
      }
      is_first = false;
    }
  }

  void add_values(std::size_t field, const BatchColumn& column,
                  std::size_t rows) {
    for (std::size_t row = 0; row < rows; ++row) {
      const auto at = static_cast<py::ssize_t>(row);
      switch (fields_[field].spec.kind) {
        case FieldKind::kInt64:
          builder_->add_int64(field, column.ints->data()[at]);
          break;
        case FieldKind::kFloat64:
          builder_->add_float64(field, column.floats->data()[at]);
          break;
        case FieldKind::kString:
          builder_->add_string(field, column.texts->at(row));
          break;
        case FieldKind::kBytes:
          return;
      }
    }
  }

  /// The key is a part of the path, or of `asked_`.
  PathRules::Found place_of(std::string_view path, std::size_t row) {
    if (path.empty()) return {};
    if (const auto found = rules_.find(path)) return *found;
    const py::tuple told =
        ask_(py::str(path.data(), path.size()), rows_ + row + 1);
    const auto place = py::cast<std::uint32_t>(told[0]);
    asked_ = py::cast<std::string>(told[1]);
    if (!told[2].is_none()) {
      const auto [prefix, form] =
          py::cast<std::pair<std::string, std::string>>(told[2]);
      rules_.learn({.prefix = prefix, .rest = rest_of(form), .place = place});
    }
    return {.place = place, .key = asked_};
  }

  std::vector<ManifestField> fields_;
  const py::function ask_;
  PathRules rules_;
  std::optional<ManifestBuilder> builder_;
  std::uint64_t rows_ = 0;
  std::string asked_;
  std::string name_;
};

/// `read(is_stopped)` gives a RowCollector and the places, and is asked for
/// them only where no catalogue is kept.
Dataset open_rows_of_table(const StoreOptions& store, const py::function& read,
                           const std::string& description,
                           const std::string& refresh) {
  CatalogueOptions options;
  options.refresh = value_or_raise(Refresh::parse(refresh));
  return run_interruptibly([&](const std::stop_token& stop) {
    const auto made = [&]() -> Result<TableRows> {
      const GilHeld locked;
      try {
        const py::tuple all =
            read(py::cpp_function([stop] { return stop.stop_requested(); }));
        return TableRows{.places = py::cast<std::vector<std::string>>(all[1]),
                         .rows = py::cast<RowCollector&>(all[0]).take()};
      } catch (const py::error_already_set& raised) {
        return error_of(raised);
      }
    };
    return open_table(store, made, description, options, process_env(), stop);
  });
}

/// One version of an object, read in parts. Threads: any.
class ObjectFile {
 public:
  ObjectFile(const std::string& url, const StoreOptions& options) {
    const ObjectUrl parts = split_object_url(url);
    if (parts.name.empty()) {
      raise_python(Error(ErrorCode::kInvalidArgument,
                         url + " is a folder; name an object in it"));
    }
    opened_ = value_or_raise(
        open_store(parts.folder, options, process_env(), nullptr));
    key_ = key_in_store(opened_.prefix, parts.name);
    info_ = run_interruptibly([&](const std::stop_token& stop) {
      return opened_.store->stat(key_, stop);
    });
    if (!opened_.store->traits().has_etags) info_.etag.clear();
  }

  py::bytes read(std::uint64_t offset, std::uint64_t length_bytes) {
    const Buffer bytes =
        run_interruptibly([&](const std::stop_token& stop) -> Result<Buffer> {
          Buffer into(length_bytes);
          if (length_bytes == 0) return into;
          LEAT_TRY_VOID(read_range(*opened_.store,
                                   {.object = {key_, info_.etag},
                                    .offset = offset,
                                    .into = into.span()},
                                   stop));
          return into;
        });
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  const std::string& identity() const { return opened_.identity; }
  std::uint64_t size() const { return info_.size_bytes; }
  py::bytes etag() const { return py::bytes(info_.etag); }

 private:
  OpenedStore opened_;
  std::string key_;
  ObjectInfo info_;
};

/// Frees a file while others run: threads of its store may call Python.
struct FreeFileUnlocked {
  void operator()(ObjectFile* file) const {
    const GilReleased unlocked;
    delete file;
  }
};

}  // namespace

void bind_table(py::module_& module) {
  py::class_<RowCollector>(module, "RowCollector")
      .def(py::init<const std::vector<
                        std::tuple<std::string, std::string, bool, bool>>&,
                    py::function, const std::vector<std::string>&>(),
           py::arg("fields"), py::arg("ask"), py::arg("unknown"))
      .def("add", &RowCollector::add, py::arg("rows"), py::arg("columns"))
      .def("renumber", &RowCollector::renumber, py::arg("field"),
           py::arg("numbers"))
      .def("set_classes", &RowCollector::set_classes, py::arg("classes"))
      .def_property_readonly("rows", &RowCollector::rows);
  py::class_<ObjectFile, std::unique_ptr<ObjectFile, FreeFileUnlocked>>(
      module, "ObjectFile")
      .def(py::init<const std::string&, const StoreOptions&>(), py::arg("url"),
           py::arg("store"))
      .def("read", &ObjectFile::read, py::arg("offset"),
           py::arg("length_bytes"))
      .def_property_readonly("identity", &ObjectFile::identity)
      .def_property_readonly("size", &ObjectFile::size)
      .def_property_readonly("etag", &ObjectFile::etag);
  module.def("rows_of_table", &open_rows_of_table, py::arg("store"),
             py::arg("read"), py::arg("description"), py::arg("refresh"));
}

}  // namespace leat
