// Azure Storage's SharedKey signature.
#pragma once
#include <string>
#include <string_view>

#include "leat/store/cloud/credentials.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// The text that is signed of a request to `account`. The request has its
/// `x-ms-date` and `x-ms-version` already.
std::string shared_key_string_to_sign(std::string_view account,
                                      const HttpRequest& request);

/// Adds the Authorization of `who`: the account's name as the access key's id,
/// and its key, no longer in base64.
void sign_with_shared_key(const Credentials& who, HttpRequest& request);

}  // namespace leat
