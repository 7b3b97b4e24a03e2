#include "leat/pipeline/ops/chains.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "leat/base/hash.h"
#include "leat/pipeline/program/program.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<FieldSpec> kChainFields = {{"image", FieldKind::kBytes},
                                             {"mask", FieldKind::kBytes},
                                             {"txt", FieldKind::kBytes}};
constexpr std::string_view kBothChains =
    "decode_image:field=image,decode_image:field=mask:to=mask:mode=L,";

Result<std::vector<Chain>> chains(const std::string& text) {
  LEAT_TRY(const auto specs, parse_ops(text));
  std::vector<Op> ops;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    LEAT_TRY(Op op, make_op(specs[i], i));
    ops.push_back(std::move(op));
  }
  return chain_ops(std::move(ops), kChainFields);
}

std::vector<std::string> names_in(const Chain& chain) {
  std::vector<std::string> names;
  for (const Op& op : chain.ops) names.push_back(op.name);
  return names;
}

std::string chain_error(const std::string& text) {
  const auto made = chains(text);
  if (made) return "";
  EXPECT_EQ(made.error().code(), ErrorCode::kInvalidArgument);
  return made.error().message();
}

TEST(ChainsTest, AnOpWithoutAFieldIsInAllChainsThatItIsFor) {
  const auto made = chains(std::string(kBothChains) +
                           "parse_text,resize:9,random_crop:8,cast");

  ASSERT_TRUE(made) << made.error().message();
  ASSERT_EQ(made->size(), 3u);
  for (const Chain& chain : {made->at(0), made->at(1)}) {
    EXPECT_THAT(names_in(chain),
                ElementsAre("decode_image", "resize", "random_crop", "cast"));
    EXPECT_EQ(chain.ops[2].index, 4u);
    EXPECT_EQ(chain.ops[2].drawn_for, xxh3_64(as_bytes("image")));
  }
  EXPECT_THAT(names_in(made->at(2)), ElementsAre("parse_text"));
}

TEST(ChainsTest, OneImageDrawsAsItsOwnNameSays) {
  const auto made = chains("decode_image:field=mask:to=mask,random_crop:8");

  ASSERT_TRUE(made);
  EXPECT_EQ(made->at(0).ops[1].drawn_for, std::nullopt);
  EXPECT_FALSE(made->at(0).ops[1].meets_siblings);
}

TEST(ChainsTest, SizesMeetWhereOneDrawMovesAll) {
  const auto made = chains(std::string(kBothChains) +
                           "resize:9,center_crop:9,random_crop:8,"
                           "random_horizontal_flip");

  ASSERT_TRUE(made);
  std::vector<bool> meets;
  for (const Op& op : made->at(1).ops) meets.push_back(op.meets_siblings);
  EXPECT_THAT(meets, ElementsAre(false, false, false, true, false));
}

TEST(ChainsTest, AnIndependentOpDrawsForEach) {
  const auto made =
      chains(std::string(kBothChains) + "random_crop:8:independent=true");

  ASSERT_TRUE(made) << made.error().message();
  for (const Chain& chain : *made) {
    EXPECT_EQ(chain.ops[1].drawn_for, std::nullopt);
    EXPECT_FALSE(chain.ops[1].meets_siblings);
  }
}

TEST(ChainsTest, FieldsThatWouldBeDrawnApartAreRefused) {
  for (const std::string& ops :
       {std::string(kBothChains) + "random_crop:8:field=image",
        std::string(kBothChains) +
            "random_crop:8:field=image,random_crop:8:field=mask",
        std::string("decode_image:field=image,random_crop:8,"
                    "decode_image:field=mask:to=mask")}) {
    EXPECT_THAT(chain_error(ops),
                AllOf(HasSubstr("random_crop (op "), HasSubstr("'image'"),
                      HasSubstr("'mask'"), HasSubstr("without field="),
                      HasSubstr("independent=True")))
        << ops;
  }
  EXPECT_EQ(chain_error(std::string(kBothChains) +
                        "random_crop:8:field=image:independent=true"),
            "");
  EXPECT_EQ(chain_error(std::string(kBothChains) + "resize:8:field=image"), "");
}

TEST(ChainsTest, FunctionsThatDrawForOneFieldEachAreRefused) {
  const auto error_of_drawn = [](std::string_view params) {
    std::vector<Op> ops;
    for (const std::string_view field : {"image", "mask"}) {
      OpSpec decode{
          .name = "decode_image",
          .params_json = fmt::format(R"({{"field":"{0}","to":"{0}"}})", field)};
      ops.push_back(std::move(make_op(decode, ops.size())).value());
    }
    for (const std::string_view field : {"image", "mask"}) {
      Op op;
      op.name = "python";
      op.index = ops.size();
      op.field = field;
      op.is_independent = params == "independent";
      op.params = FunctionOp{};
      std::get<FunctionOp>(op.params).draws = params != "still";
      ops.push_back(std::move(op));
    }
    const auto made = chain_ops(std::move(ops), kChainFields);
    return made ? std::string() : made.error().message();
  };

  EXPECT_THAT(error_of_drawn("draws"),
              AllOf(HasSubstr("python (op 2) draws for 'image'"),
                    HasSubstr("python (op 3) for 'mask'"),
                    HasSubstr("fields=(\"image\", \"mask\")")));
  EXPECT_EQ(error_of_drawn("independent"), "");
  EXPECT_EQ(error_of_drawn("still"), "");
}

const std::vector<std::string> kRandomColours = {
    "color_jitter:brightness=0.4",
    "color_jitter:brightness=1.2/1.2:contrast=2/2",  // In a drawn order.
    "gaussian_blur:3",
    "random_grayscale",
    "random_solarize:128",
    "random_posterize:4",
    "random_invert",
    "random_adjust_sharpness:2",
    "random_autocontrast",
    "random_equalize",
    "random_erasing"};

TEST(ChainsTest, OneRandomOpForEachOfTwoImagesIsRefused) {
  for (const std::string& op : kRandomColours) {
    const std::string name = op.substr(0, op.find(':'));
    EXPECT_THAT(
        chain_error(std::string(kBothChains) + op + ":field=image," + op +
                    ":field=mask"),
        AllOf(HasSubstr(name + " (op 2) draws for 'image'"),
              HasSubstr(name + " (op 3) for 'mask' of the same sample"),
              HasSubstr("put " + name + " once behind them, without field="),
              HasSubstr("independent=True")))
        << op;
    EXPECT_THAT(
        chain_error("decode_image:field=image," + op +
                    ",decode_image:field=mask:to=mask," + op + ":field=mask"),
        HasSubstr(name + " (op 1) draws for 'image'"))
        << op;
  }
}

TEST(ChainsTest, OpsThatChangeOneImageOrAllOrNothingAtRandomAreTaken) {
  for (const std::string& op : kRandomColours) {
    const std::string apart = op + ":independent=true:field=";
    for (const std::string& ops :
         {op, op + ":field=image", op + "," + op + ":field=mask",
          op + ":field=image," + op + ":field=image",
          op + ":field=image," + apart + "mask",
          apart + "image," + apart + "mask",
          op + ":field=image,resize:9:field=mask"}) {
      EXPECT_EQ(chain_error(std::string(kBothChains) + ops), "") << ops;
    }
  }
  EXPECT_EQ(chain_error(std::string(kBothChains) +
                        "gaussian_blur:3:field=image,random_invert:field=mask"),
            "");
  for (const std::string op :
       {"gaussian_blur:3:sigma=1", "random_invert:p=1", "random_grayscale:p=0",
        "color_jitter:brightness=1.2/1.2", "color_jitter", "grayscale"}) {
    EXPECT_EQ(chain_error(std::string(kBothChains) + op + ":field=image," + op +
                          ":field=mask"),
              "")
        << op;
  }
}

TEST(ChainsTest, AChainForEachFieldIsRefusedWhereItsOpsNameNone) {
  for (const std::string op : {"resize:8", "random_crop:8", "cast"}) {
    EXPECT_THAT(chain_error("decode_image:field=image," + op +
                            ",decode_image:field=mask:to=mask," + op),
                AllOf(HasSubstr("(op 3) without field= works on 'image' and "
                                "'mask'"),
                      HasSubstr("(op 1) came before 'mask' was decoded"),
                      HasSubstr("decode all fields first")))
        << op;
  }
}

TEST(ChainsTest, OneNameIsForOneField) {
  EXPECT_THAT(chain_error(std::string(kBothChains) + "resize:8:to=small"),
              AllOf(HasSubstr("'image' and 'mask'"), HasSubstr("field=")));
}

}  // namespace
}  // namespace leat
