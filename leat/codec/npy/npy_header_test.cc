#include "leat/codec/npy/npy_header.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A file of this version, dict and content.
std::string npy_file(const std::string& dict, std::size_t data_bytes,
                     char version = 1) {
  std::string file = "\x93NUMPY"s + version + '\0';
  const std::size_t length = dict.size();
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(length >> (8 * i) & 0xff);
  }
  return file + dict + std::string(data_bytes, 'x');
}

std::string dict_of(const std::string& descr, const std::string& shape,
                    const std::string& fortran = "False") {
  return fmt::format(
      "{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}   \n", descr,
      fortran, shape);
}

Error header_error(const std::string& file) {
  const auto header = read_npy_header(as_bytes(file));
  EXPECT_FALSE(header);
  return header ? Error(ErrorCode::kInternal, "none") : header.error();
}

TEST(NpyHeaderTest, ReadsAllThreeVersions) {
  for (const char version : {1, 2, 3}) {
    const std::string file = npy_file(dict_of("<f4", "(3, 4)"), 48, version);

    const auto header = read_npy_header(as_bytes(file));

    ASSERT_TRUE(header) << header.error().message();
    EXPECT_EQ(header->kind, NpyKind::kFloat);
    EXPECT_EQ(header->item_bytes, 4u);
    EXPECT_THAT(header->shape, ElementsAre(3, 4));
    EXPECT_EQ(header->data_offset, file.size() - 48);
  }
}

TEST(NpyHeaderTest, ReadsEveryPlainType) {
  for (const char* type :
       {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2",
        "<f4", "<f8", "<c8", "<c16", "=i8", ">i1", "i4"}) {
    const std::string number =
        std::string(type).substr(std::string(type).find_first_of("0123456789"));
    const std::size_t size = std::stoul(number);
    const auto header =
        read_npy_header(as_bytes(npy_file(dict_of(type, "(2,)"), 2 * size)));
    ASSERT_TRUE(header) << header.error().message();
    EXPECT_EQ(header->item_bytes, size);
  }
}

TEST(NpyHeaderTest, ReadsShapesAsPythonWritesThem) {
  const auto shape = [](const char* text, std::size_t items) {
    const auto header =
        read_npy_header(as_bytes(npy_file(dict_of("|u1", text), items)));
    EXPECT_TRUE(header) << text << ": " << header.error().message();
    return header ? header->shape : std::vector<std::int64_t>{-1};
  };
  EXPECT_THAT(shape("()", 1), IsEmpty());
  EXPECT_THAT(shape("(7,)", 7), ElementsAre(7));
  EXPECT_THAT(shape("( 2 , 3 , )", 6), ElementsAre(2, 3));
  EXPECT_THAT(shape("(2L, 3L)", 6), ElementsAre(2, 3));
  EXPECT_THAT(shape("(0, 5)", 0), ElementsAre(0, 5));
  EXPECT_THAT(shape("(1000000, 0, 1000)", 0), ElementsAre(1'000'000, 0, 1000));
}

TEST(NpyHeaderTest, TakesKeysInAnyOrderAndEitherQuotes) {
  const auto header = read_npy_header(as_bytes(
      npy_file(R"({"shape":(2,),"fortran_order":True,"descr":"<i8"})", 16)));

  // An array of one dimension is in C order.
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_THAT(header->shape, ElementsAre(2));
}

TEST(NpyHeaderTest, SaysWhatIsSoundAndNotTaken) {
  const auto refused = [](const std::string& file, const char* what) {
    const Error error = header_error(file);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << what;
    EXPECT_THAT(error.message(), HasSubstr(what));
  };
  refused(npy_file(dict_of("<f4", "(2, 2)", "True"), 16), "ascontiguousarray");
  refused(npy_file(dict_of(">f4", "(2,)"), 8), "astype(\"<f4\")");
  refused(npy_file(dict_of("|O", "(2,)"), 16), "Python objects");
  refused(npy_file(dict_of("O8", "(2,)"), 16), "Python objects");
  refused(npy_file(dict_of("<U5", "(2,)"), 40), "\"<U5\" is none of");
  refused(npy_file(dict_of("<M8[ns]", "(2,)"), 16), "is none of");
  refused(npy_file(dict_of("<f16", "(2,)"), 32), "is none of");
  refused(npy_file(dict_of("", "(2,)"), 32), "is none of");
  refused(npy_file(dict_of("<", "(2,)"), 32), "is none of");
  refused(
      npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
               4),
      "structures");
}

TEST(NpyHeaderTest, CallsCorruptWhatIsNotWhole) {
  const std::string whole = npy_file(dict_of("<f8", "(3,)"), 24);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Error error = header_error(whole.substr(0, size));
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << size;
  }
  EXPECT_THAT(header_error(whole + "x").message(), HasSubstr("1 bytes follow"));
  EXPECT_THAT(header_error("\x89PNG\r\n\x1a\n....").message(),
              HasSubstr("\"\\x89PNG"));
}

TEST(NpyHeaderTest, RefusesHostileHeaders) {
  const auto corrupt = [](const std::string& file) {
    const Error error = header_error(file);
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.message();
  };
  for (const char* shape :
       {"(4294967296, 4294967296)", "(9223372036854775807,)",
        "(2, 9223372036854775807)", "(1, 1, 100)"}) {
    EXPECT_THAT(corrupt(npy_file(dict_of("<f8", shape), 24)),
                HasSubstr("cut short"));
  }
  for (const char* shape :
       {"(4611686018427387904, 0)", "(0, 9223372036854775807)",
        "(4294967296, 0, 4294967296)"}) {
    EXPECT_THAT(corrupt(npy_file(dict_of("<f8", shape), 0)),
                HasSubstr("which no array has"));
  }
  for (const char* shape : {"(-1,)", "(3)", "(3", "3", "[3]", "(3,,)", "(,)",
                            "(1.0,)", "(99999999999999999999,)", "(0x3,)"}) {
    EXPECT_THAT(corrupt(npy_file(dict_of("<f8", shape), 24)),
                HasSubstr("malformed"));
  }
  std::string many = "(";
  for (int i = 0; i < 33; ++i) many += "1,";
  EXPECT_THAT(corrupt(npy_file(dict_of("<f8", many + ")"), 8)),
              HasSubstr("malformed"));
  for (const char* dict :
       {"", "{", "{}x", "{'descr': '<f8'", "{'descr' '<f8'}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (), 'x': 1}",
        "{'descr': '<\\x66', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ()} + f()"}) {
    EXPECT_THAT(corrupt(npy_file(dict, 8)), HasSubstr("malformed")) << dict;
  }
  EXPECT_THAT(corrupt(npy_file("{'descr': '<f8', 'shape': ()}", 8)),
              HasSubstr("lacks"));
  EXPECT_THAT(corrupt(npy_file(std::string(10'001, ' '), 0, 2)),
              HasSubstr("more than 10000"));
  std::string version = npy_file(dict_of("<f8", "()"), 8);
  version[6] = 4;
  EXPECT_THAT(corrupt(version), HasSubstr("version 4.0"));
}

}  // namespace
}  // namespace leat
