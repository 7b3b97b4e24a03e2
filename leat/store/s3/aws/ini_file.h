// The dialect of INI in which AWS's tools keep their settings.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// Values by name; names are in lower case. A value nested under `s3 =` is
/// named `s3.endpoint_url`.
using IniSection = std::map<std::string, std::string, std::less<>>;

/// Sections by the text between the brackets, blanks collapsed, quotes dropped:
/// `default`, `profile dev`, `services local`.
using IniFile = std::map<std::string, IniSection, std::less<>>;

/// Reads INI text. `#` and `;` begin a comment on their own line and, after a
/// blank, behind a value. Sections of the same name are merged; the later value
/// wins.
///
/// Errors:
///   kInvalidArgument  a line that is neither section, value nor comment; named
///                     by `file` and number, never quoted, since it may hold a
///                     secret
Result<IniFile> parse_ini(std::string_view text, std::string_view file);

}  // namespace leat
