#include "leat/store/http/last_modified.h"

#include <curl/curl.h>

#include <string>

namespace leat {

std::chrono::sys_seconds parse_last_modified(std::string_view value) {
  const time_t time = curl_getdate(std::string(value).c_str(), nullptr);
  return std::chrono::sys_seconds(std::chrono::seconds(time < 0 ? 0 : time));
}

}  // namespace leat
