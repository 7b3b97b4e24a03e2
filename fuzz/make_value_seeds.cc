// make_value_seeds FOLDER: writes what npy_fuzz, json_fuzz and text_fuzz start
// from, into a folder for each.

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
  write_seed(folder / "json", "object",
             R"({"a": [1, {"b": 2.5}], "b": "\u00e9", "c": [true, null]})");
  write_seed(folder / "json", "nested", R"({"a": {"b": [[1, 2], [3, -4e5]]}})");
  write_seed(folder / "json", "arrays",
             R"([["text"], [], 12345678901234567890])");
  write_seed(folder / "text", "whole", " -12\n");
  write_seed(folder / "text", "real", "+1.5e-300");
  write_seed(folder / "text", "utf8", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x88");
  return 0;
}
