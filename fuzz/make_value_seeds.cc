// make_value_seeds FOLDER: writes what npy_fuzz, npy_mask_fuzz,
// litdata_array_fuzz, mds_array_fuzz, chunk_fuzz, json_fuzz, json_rows_fuzz,
// text_fuzz and reply_fuzz start from, into a folder for each.

#include <filesystem>
#include <fstream>
#include <string>

namespace {

void write_seed(const std::filesystem::path& folder, const std::string& name,
                const std::string& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
}

// Behind the magic bytes, which npy_fuzz adds.
std::string npy(const std::string& dict, std::size_t data_bytes) {
  return std::string("\x01\0", 2) + static_cast<char>(dict.size()) + '\0' +
         dict + std::string(data_bytes, 'x');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  write_seed(
      folder / "npy", "floats",
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24));
  write_seed(folder / "npy", "scalar",
             npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1));
  write_seed(
      folder / "npy", "fortran",
      npy("{\"shape\":(4L,), \"fortran_order\":True, \"descr\":\">i8\"}", 32));
  write_seed(folder / "litdata_array", "tensor",
             std::string("\0\0\0\x0e\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16) +
                 std::string(12, 'x'));
  write_seed(folder / "litdata_array", "numpy",
             std::string("\x01\0\0\0\x02\0\0\0\x02\0\0\0\x03\0\0\0", 16) +
                 std::string(12, 'x'));
  write_seed(folder / "mds_array", "floats",
             "\x22\x08\x02\x03" + std::string(24, 'x'));
  write_seed(folder / "mds_array", "int16",
             std::string("\x05\x03\x00", 3) + std::string(6, 'x'));
  // The first byte is a sixteenth of the size.
  write_seed(folder / "chunk", "lzf",
             std::string("\x01\x02"
                         "abc\x60\x02\xc0\x00",
                         9));
  // The first byte chooses the sample.
  write_seed(
      folder / "npy_mask", "bytes",
      "a" + npy("{'descr': '|u1', 'fortran_order': False, 'shape': (9, 7), }\n",
                63));
  write_seed(
      folder / "npy_mask", "longs",
      "b" + npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }\n",
                48));
  write_seed(folder / "json", "object",
             R"({"a": [1, {"b": 2.5}], "b": "\u00e9", "c": [true, null]})");
  write_seed(folder / "json", "nested", R"({"a": {"b": [[1, 2], [3, -4e5]]}})");
  write_seed(folder / "json", "arrays",
             R"([["text"], [], 12345678901234567890])");
  write_seed(folder / "json_rows", "boxes",
             R"({"boxes": [[1, 2.5, 3e2, -4], []], "a": {"b": [[7, 8]]}})");
  write_seed(folder / "json_rows", "objects",
             R"({"a": [{"bbox": [1, 2, 3, 4], "c": 18}, {"bbox": []}]})");
  write_seed(folder / "json_rows", "list", R"([{"a": {"b": [1]}}, 7, "x"])");
  // The first byte cuts the reply, the second is the size of its place.
  write_seed(folder / "reply", "placed",
             "\x04\x05HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n"
             "Content-Range: bytes 0-4/9\r\nETag: \"e\"\r\n\r\n01234");
  write_seed(folder / "reply", "chunked",
             "\x01\x0aHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
             "Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6;x=y\r\n456789"
             "\r\n0\r\nTrailer: t\r\n\r\n");
  write_seed(folder / "reply", "until_close",
             "\x09\x30HTTP/1.0 404 Not Found\r\nConnection: close\r\n\r\nno");
  write_seed(folder / "text", "whole", " -12\n");
  write_seed(folder / "text", "real", "+1.5e-300");
  write_seed(folder / "text", "utf8", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x88");
  return 0;
}
