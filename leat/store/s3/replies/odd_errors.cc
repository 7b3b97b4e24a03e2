// Statuses that are not a success, and what their bodies say.
#include <fmt/format.h>

#include "leat/store/s3/replies/odd_replies.h"

namespace leat::testing {
namespace {

using enum ErrorCode;

std::string xml(std::string_view code, std::string_view message) {
  return fmt::format("<Error><Code>{}</Code><Message>{}</Message></Error>",
                     code, message);
}

std::vector<OddReply> statuses() {
  struct Status {
    int status;
    Outcome outcome;
  };
  const std::vector<Status> known = {
      {300, fails(kInvalidArgument, "region")},
      {302, fails(kInvalidArgument, "region")},
      {304, fails(kInvalidArgument, "region")},
      {400, fails(kInvalidArgument, "does not accept")},
      {401, fails(kPermissionDenied, "s3:GetObject")},
      {403, fails(kPermissionDenied, "s3:GetObject")},
      {404, fails(kNotFound, "no object")},
      {405, fails(kInvalidArgument, "does not accept")},
      {407, fails(kInvalidArgument, "")},
      {408, fails(kUnavailable, "may recover")},
      {410, fails(kNotFound, "no object")},
      {412, fails(kCorrupt, "index again")},
      {416, fails(kInvalidArgument, "past the end")},
      {418, fails(kInvalidArgument, "does not accept")},
      {429, fails(kThrottled, "fewer requests")},
      {500, fails(kUnavailable, "may recover")},
      {502, fails(kUnavailable, "may recover")},
      {503, fails(kThrottled, "fewer requests")},
      {504, fails(kUnavailable, "may recover")},
      {509, fails(kThrottled, "fewer requests")},
      {599, fails(kUnavailable, "may recover")},
      {999, fails(kUnavailable, "")},
  };
  std::vector<OddReply> all;
  for (const Status& row : known) {
    all.push_back({.name = fmt::format("status: {}", row.status),
                   .reply = {.status = row.status, .body = "<html>no</html>"},
                   .outcome = row.outcome});
  }
  return all;
}

std::vector<OddReply> codes() {
  struct Said {
    int status;
    std::string_view code;
    ErrorCode outcome;
  };
  std::vector<OddReply> all;
  for (const Said& row :
       std::vector<Said>{{400, "RequestTimeout", kUnavailable},
                         {400, "ThrottlingException", kThrottled},
                         {400, "InvalidRequest", kInvalidArgument},
                         {403, "SlowDown", kThrottled},
                         {403, "InvalidAccessKeyId", kPermissionDenied},
                         {404, "NoSuchBucket", kNotFound},
                         {500, "InternalError", kUnavailable},
                         {500, "SlowDown", kThrottled},
                         {503, "InternalError", kUnavailable}}) {
    all.push_back({.name = fmt::format("code: {} {}", row.status, row.code),
                   .reply = {.status = row.status, .body = xml(row.code, "m")},
                   .outcome = fails(row.outcome, std::string(row.code))});
  }
  return all;
}

OddReply denied(std::string name, std::string body,
                std::string says = "HTTP 403") {
  return {.name = "error: " + std::move(name),
          .reply = {.status = 403, .body = std::move(body)},
          .outcome = fails(kPermissionDenied, std::move(says))};
}

/// A server that repeats in its error what `header` of the request holds.
OddReply echo(std::string name, std::string header, std::size_t from,
              std::size_t count, std::string before = "got ") {
  OddReply row;
  row.name = "echo: " + std::move(name);
  row.outcome = fails(kPermissionDenied, "(hidden)");
  row.answer = [=](const ServerRequest& request) -> ServerReply {
    return {.status = 403,
            .body = xml("AccessDenied",
                        before + request.header(header).substr(from, count))};
  };
  return row;
}

std::vector<OddReply> bodies() {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "<a>";
  const std::string bomb =
      "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
      "\"&a;&a;&a;&a;&a;&a;&a;&a;\">]><Error><Code>AccessDenied</Code>"
      "<Message>&b;&b;&b;</Message></Error>";
  const auto endless = [](std::string head) -> ServerReply {
    return {.raw = std::move(head),
            .steps = {{.bytes = std::string(8192, '<'),
                       .times = ServerStep::kEndless}}};
  };
  return {
      denied("no body", ""),
      denied("of zeros", std::string(1000, '\0')),
      denied("deep XML", deep),
      denied("an entity that swells", bomb, "AccessDenied"),
      denied("a message of 60 KB",
             xml("AccessDenied", std::string(60'000, 'm')), "mmmm"),
      denied("a message over lines", xml("AccessDenied", "a\r\nb\tc")),
      denied("a message of escapes",
             xml("AccessDenied", "&#27;[31mred&#7;&#x9b;31m")),
      denied("a message that is no UTF-8", xml("AccessDenied", "\xff\xfe\x80"),
             "???"),
      denied("a code of 60 KB", xml(std::string(60'000, 'C'), "m")),
      {"error: a body without length or end", endless("HTTP/1.1 503 X\r\n\r\n"),
       fails(kThrottled, "HTTP 503")},
      {"error: a body of a petabyte",
       endless("HTTP/1.1 404 X\r\nContent-Length: 1125899906842624\r\n\r\n"),
       fails(kNotFound, "HTTP 404")},
      {"error: chunks without end",
       {.raw = "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n",
        .steps = {{.bytes = "1000\r\n" + std::string(4096, 'x') + "\r\n",
                   .times = ServerStep::kEndless}}},
       fails(kUnavailable, "HTTP 500")},
      {"error: a body that is cut",
       {.status = 404,
        .body = xml("NoSuchKey", "m"),
        .ending = ServerEnding::kCut,
        .sent_bytes = 10},
       fails(kUnavailable, "")},
      echo("the token", "x-amz-security-token", 0, std::string::npos),
      echo("a part of the token", "x-amz-security-token", 5, 25),
      echo("the token in quotes", "x-amz-security-token", 0, std::string::npos,
           "token="),
      echo("the Authorization header", "authorization", 0, std::string::npos),
      echo("the signature alone", "authorization", 110, std::string::npos),
      echo("the token, after 290 characters", "x-amz-security-token", 0,
           std::string::npos, std::string(285, 'm') + ' '),
  };
}

}  // namespace

std::vector<OddReply> odd_errors() {
  std::vector<OddReply> all = statuses();
  for (auto rows : {codes(), bodies()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace leat::testing
