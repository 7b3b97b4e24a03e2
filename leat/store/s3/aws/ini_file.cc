#include "leat/store/s3/aws/ini_file.h"

#include <cstddef>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"

namespace leat {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view without_comment(std::string_view value) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    if ((value[i] == '#' || value[i] == ';') && is_blank(value[i - 1])) {
      return trimmed(value.substr(0, i));
    }
  }
  return value;
}

std::string section_name(std::string_view text) {
  std::string name;
  bool owes_blank = false;
  for (const char c : trimmed(text)) {
    if (c == '"' || c == '\'') continue;
    if (is_blank(c)) {
      owes_blank = true;
      continue;
    }
    if (owes_blank && !name.empty()) name += ' ';
    owes_blank = false;
    name += c;
  }
  return name;
}

/// Reads one line after another.
class Reader {
 public:
  /// Describes the error in the line; empty if there is none.
  std::string_view read(std::string_view line) {
    const bool is_indented = !line.empty() && is_blank(line.front());
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') return {};
    if (text.front() == '[') return read_section(text);
    if (!section_) return "a value before any [section]";
    if (is_indented && !parent_.empty()) return read_nested(text);
    return read_value(text);
  }

  IniFile take() { return std::move(file_); }

 private:
  std::string_view read_section(std::string_view text) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return "a section without ']'";
    const std::string name = section_name(text.substr(1, end - 1));
    if (name.empty()) return "a section without a name";
    section_ = &file_[name];
    parent_.clear();
    return {};
  }

  std::string_view read_value(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return "neither 'name = value' nor a [section]";
    }
    const std::string name = lowered(trimmed(text.substr(0, equals)));
    const std::string_view value =
        without_comment(trimmed(text.substr(equals + 1)));
    (*section_)[name] = value;
    parent_ = value.empty() ? name : std::string();
    return {};
  }

  std::string_view read_nested(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return "not 'name = value' below a name without a value";
    }
    const std::string name = lowered(trimmed(text.substr(0, equals)));
    (*section_)[parent_ + "." + name] =
        without_comment(trimmed(text.substr(equals + 1)));
    return {};
  }

  IniFile file_;
  IniSection* section_ = nullptr;
  std::string parent_;  // The key that the next indented lines belong to; empty
                        // if none may follow.
};

}  // namespace

Result<IniFile> parse_ini(std::string_view text, std::string_view file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Reader reader;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view wrong = reader.read(text.substr(0, end));
    if (!wrong.empty()) {
      return invalid("{}, line {}: {}; correct the file", file, number, wrong);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return reader.take();
}

}  // namespace leat
