// Guards a server against web pages: DNS rebinding and foreign forms.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/serve/http_service.h"

namespace leat {

/// True if a request with this Host header may be answered: it names an
/// address, "localhost" or one of `names`, with or without a port. A hostile
/// page whose name resolves to 127.0.0.1 sends its own name.
bool may_ask_for(std::string_view host_header,
                 const std::vector<std::string>& names);

/// True unless a browser says that a page of another place sends the request:
/// its Origin names another host or port than Host does, or none. Programs
/// other than browsers send no Origin.
bool is_of_own_page(const RequestHead& head);

}  // namespace leat
