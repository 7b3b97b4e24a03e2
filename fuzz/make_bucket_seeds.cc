// make_bucket_seeds FOLDER: writes FOLDER/request/*, FOLDER/list/* and
// FOLDER/upload/*.
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "leat/bucket/request_body.h"

namespace {

void put(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string part(int number, const std::string& bytes) {
  return "<Part><PartNumber>" + std::to_string(number) +
         "</PartNumber><ETag>&quot;" + leat::to_hex(leat::md5(bytes)) +
         "&quot;</ETag></Part>";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  // The first byte says how the target cuts or reads the rest.
  put(folder / "request" / "get",
      "\5GET /b/k?a=b HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n");
  put(folder / "request" / "put",
      "\1PUT /b/k HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
      "Content-Length: 4\r\n\r\nbody");
  put(folder / "request" / "chunked",
      "\7PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;x=y\r\nabc\r\n0\r\nTrailer: z\r\n\r\n");
  put(folder / "list" / "v2",
      "list-type=2&prefix=a%2F&delimiter=%2F&max-keys=2&start-after=a-b&"
      "encoding-type=url");
  put(folder / "list" / "next",
      "list-type=2&continuation-token=612f62&fetch-owner=true");
  put(folder / "list" / "v1", "marker=a%2Fc&delimiter=b&prefix=b&max-keys=0");
  put(folder / "upload" / "complete", "0<CompleteMultipartUpload>" +
                                          part(2, "xx") +
                                          "</CompleteMultipartUpload>");
  put(folder / "upload" / "order", "0<CompleteMultipartUpload>" +
                                       part(2, "xx") + part(1, "x") +
                                       "</CompleteMultipartUpload>");
  put(folder / "upload" / "delete",
      "1<Delete><Object><Key>k</Key></Object><Object><Key>../other/k</Key>"
      "</Object><Quiet>false</Quiet></Delete>");
  return 0;
}
