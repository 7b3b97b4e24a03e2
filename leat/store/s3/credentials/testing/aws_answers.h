// The fixture of the tests of AWS's places, and what AWS answers.
#pragma once
#include <string>
#include <string_view>

#include "leat/store/cloud/testing/link_world.h"

namespace leat::testing {

/// The answer of metadata services; good for an hour.
inline std::string json_credentials(std::string_view code = "Success") {
  return R"({"Code":")" + std::string(code) +
         R"(","AccessKeyId":"ASIA1","SecretAccessKey":"PLANTEDSECRET",)"
         R"("Token":"PLANTEDTOKEN","Expiration":"2024-02-29T13:00:00Z"})";
}

/// The answer of STS to `action`; good for an hour.
inline std::string sts_grant(std::string_view action) {
  const std::string name(action);
  return "<" + name + "Response xmlns=\"https://sts.amazonaws.com/doc/\"><" +
         name +
         "Result><Credentials><AccessKeyId>ASIA2</AccessKeyId>"
         "<SecretAccessKey>PLANTEDSECRET2</SecretAccessKey>"
         "<SessionToken>PLANTEDTOKEN2</SessionToken>"
         "<Expiration>2024-02-29T13:00:00Z</Expiration></Credentials></" +
         name + "Result></" + name + "Response>";
}

inline std::string sts_refusal(std::string_view code,
                               std::string_view message) {
  return "<ErrorResponse><Error><Code>" + std::string(code) +
         "</Code><Message>" + std::string(message) +
         "</Message></Error></ErrorResponse>";
}

}  // namespace leat::testing
