// make_credential_seeds FOLDER: writes FOLDER/credentials/*.
#include <filesystem>
#include <fstream>
#include <string_view>

namespace {

constexpr std::string_view kDate = "Thu, 29 Feb 2024 12:00:00 GMT\n";

void put(const std::filesystem::path& path, std::string_view date,
         std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << date << text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto folder = std::filesystem::path(argv[1]) / "credentials";
  put(folder / "instance", kDate,
      R"({"Code": "Success", "AccessKeyId": "AKIA", "SecretAccessKey": "s/+=",
          "Token": "t", "Expiration": "2024-02-29T13:00:00Z"})");
  put(folder / "process", "",
      R"({"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "s",
          "SessionToken": "t", "Expiration": "2024-02-29T13:00:00.5+01:00"})");
  put(folder / "refusal", "",
      R"({"Code": "Refused", "Message": "not with open-sesame", "code": 1})");
  put(folder / "grant", kDate,
      "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
      "<Credentials><AccessKeyId>AKIA</AccessKeyId><SecretAccessKey>s"
      "</SecretAccessKey><SessionToken>t</SessionToken><Expiration>"
      "2024-02-29T13:00:00Z</Expiration></Credentials>"
      "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>");
  put(folder / "error", "",
      "<ErrorResponse><Error><Code>AccessDenied</Code><Message>open-sesame "
      "&amp; &#10; no</Message></Error></ErrorResponse>");
  return 0;
}
