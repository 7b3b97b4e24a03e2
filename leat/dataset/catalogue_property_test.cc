// Random catalogues against the plain table that they were made from.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/dataset/catalogue.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

struct Cell {
  ByteRange range;
  std::int64_t int64 = 0;
  double float64 = 0;
  std::string string;
};

struct Row {
  std::string key;
  std::vector<Cell> cells;
};

struct Model {
  std::vector<FieldSpec> fields;
  std::vector<std::string> classes;
  std::vector<std::string> keys;
  std::vector<std::string> etags;
  std::vector<std::uint64_t> sizes;
  std::vector<Row> rows;
};

class RandomModel {
 public:
  explicit RandomModel(std::uint64_t seed) : random_(seed) {}

  Model make() {
    Model model;
    for (std::uint64_t i = below(5); i > 0; --i) {
      model.classes.push_back(text());
    }
    for (std::uint64_t i = below(6); i > 0; --i) {
      model.fields.push_back(
          {"field" + std::to_string(i), static_cast<FieldKind>(below(4))});
    }
    for (std::uint64_t i = below(8); i > 0; --i) {
      model.keys.push_back(text());
      model.etags.push_back(text());
      model.sizes.push_back(random_() >> (17 + below(40)));
    }
    // Every third model is one where samples are called as objects are.
    const bool same_keys = below(3) == 0;
    const std::uint64_t rows = same_keys ? model.keys.size() : below(20);
    for (std::uint64_t i = 0; i < rows; ++i) {
      Row row{.key = same_keys ? model.keys[i] : text(), .cells = {}};
      for (const FieldSpec& field : model.fields) {
        row.cells.push_back(cell(model, field.kind));
      }
      model.rows.push_back(std::move(row));
    }
    return model;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  std::string text() {
    std::string text(below(12), '\0');
    for (char& c : text) c = static_cast<char>(random_());
    return text;
  }

  Cell cell(const Model& model, FieldKind kind) {
    Cell cell;
    if (kind == FieldKind::kBytes && !model.keys.empty() && below(4) > 0) {
      const std::uint64_t object = below(model.keys.size());
      cell.range.object = {static_cast<std::uint32_t>(object)};
      cell.range.offset = below(model.sizes[object] + 1);
      cell.range.length_bytes =
          below(model.sizes[object] - cell.range.offset + 1);
    }
    const std::uint64_t bits = random_() >> below(64);
    if (kind == FieldKind::kInt64) {
      cell.int64 = std::bit_cast<std::int64_t>(below(2) == 0 ? bits : ~bits);
    }
    if (kind == FieldKind::kFloat64) {
      cell.float64 = std::bit_cast<double>(random_());
    }
    if (kind == FieldKind::kString) cell.string = text();
    return cell;
  }

  std::mt19937_64 random_;
};

Result<Buffer> write(const Model& model) {
  CatalogueWriter writer(Layout::kShards, EtagKind::kOther);
  writer.set_classes(model.classes);
  for (const FieldSpec& field : model.fields) writer.add_field(field);
  for (std::size_t i = 0; i < model.keys.size(); ++i) {
    writer.add_object({model.keys[i], model.etags[i], model.sizes[i]});
  }
  for (const Row& row : model.rows) {
    writer.add_sample(row.key);
    for (std::size_t f = 0; f < model.fields.size(); ++f) {
      const Cell& cell = row.cells[f];
      switch (model.fields[f].kind) {
        case FieldKind::kBytes:
          writer.set_range(f, cell.range);
          break;
        case FieldKind::kInt64:
          writer.set_int64(f, cell.int64);
          break;
        case FieldKind::kFloat64:
          writer.set_float64(f, cell.float64);
          break;
        case FieldKind::kString:
          writer.set_string(f, cell.string);
          break;
      }
    }
  }
  return std::move(writer).finish();
}

void expect_cell(const Catalogue& catalogue, std::size_t field, SampleId sample,
                 const Cell& cell) {
  switch (catalogue.fields()[field].kind) {
    case FieldKind::kBytes:
      RC_ASSERT(catalogue.range(field, sample) == cell.range);
      return;
    case FieldKind::kInt64:
      RC_ASSERT(catalogue.int64(field, sample) == cell.int64);
      return;
    case FieldKind::kFloat64:  // To the bit: NaN is not equal to itself.
      RC_ASSERT(
          std::bit_cast<std::uint64_t>(catalogue.float64(field, sample)) ==
          std::bit_cast<std::uint64_t>(cell.float64));
      return;
    case FieldKind::kString:
      RC_ASSERT(catalogue.string(field, sample) == cell.string);
      return;
  }
}

RC_GTEST_PROP(CatalogueProperty, GivesBackWhatWasWritten,
              (std::uint64_t seed)) {
  const Model model = RandomModel(seed).make();

  Result<Buffer> file = write(model);
  RC_ASSERT(file.has_value());
  const Result<Catalogue> catalogue = Catalogue::open(file->span(), nullptr);

  RC_ASSERT(catalogue.has_value());
  RC_ASSERT(catalogue->fields() == model.fields);
  RC_ASSERT(catalogue->classes() == model.classes);
  RC_ASSERT(catalogue->objects() == model.keys.size());
  RC_ASSERT(catalogue->samples() == model.rows.size());
  for (std::uint32_t i = 0; i < model.keys.size(); ++i) {
    RC_ASSERT(catalogue->object({i}).key == model.keys[i]);
    RC_ASSERT(catalogue->object({i}).etag == model.etags[i]);
    RC_ASSERT(catalogue->object({i}).size_bytes == model.sizes[i]);
  }
  for (std::uint64_t i = 0; i < model.rows.size(); ++i) {
    RC_ASSERT(catalogue->key({i}) == model.rows[i].key);
    for (std::size_t f = 0; f < model.fields.size(); ++f) {
      expect_cell(*catalogue, f, {i}, model.rows[i].cells[f]);
    }
  }
}

RC_GTEST_PROP(CatalogueProperty, NoticesAnyFlippedByte,
              (std::uint64_t seed, std::uint64_t place, std::uint8_t flip)) {
  RC_PRE(flip != 0);
  Result<Buffer> file = write(RandomModel(seed).make());
  RC_ASSERT(file.has_value());
  file->data()[place % file->size()] ^= static_cast<std::byte>(flip);

  RC_ASSERT(!Catalogue::open(file->span(), nullptr).has_value());
}

}  // namespace
}  // namespace leat
