// The tier against memcached itself, and against servers that are ill.

#include "leat/cache/memcached/peer_tier.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/owned_fd.h"
#include "leat/cache/memcached/server_process.h"
#include "leat/store/reply_box.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// For what does not measure patience: long enough for a busy machine.
constexpr auto kPatient = 20s;
constexpr std::uint64_t kMiB = 1 << 20;

Hash128 key_of(std::uint64_t number) {
  return {.high = mix64(number), .low = mix64(~number)};
}

std::string record_of(std::uint64_t number, std::size_t bytes) {
  std::string record(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    record[i] = static_cast<char>(mix64(number + i / 8) >> (8 * (i % 8)));
  }
  return record;
}

std::unique_ptr<ServerProcess> start_server(std::uint64_t memory = 64 * kMiB) {
  auto server = ServerProcess::start(
      {.memory_bytes = memory, .threads = 1, .patience = kPatient},
      process_env());
  EXPECT_TRUE(server) << server.error().message();
  return *std::move(server);
}

/// For servers that are up, or known to be down.
std::unique_ptr<PeerTier> open_tier(std::vector<std::string> servers,
                                    Nanoseconds patience = kPatient,
                                    std::string_view secret = "") {
  PeerOptions options;
  options.settings.key = peer_key_of(secret);
  options.servers = std::move(servers);
  options.settings.patience = patience;
  options.most_wait = std::chrono::hours(1);  // On a busy machine, too.
  auto tier = PeerTier::open(options);
  EXPECT_TRUE(tier) << tier.error().message();
  (void)(*tier)->wait_for_servers(kPatient);
  return *std::move(tier);
}

bool find(PeerTier& tier, std::uint64_t number, std::string& into) {
  ReplyBox<Result<bool>> box;
  tier.find(key_of(number), std::as_writable_bytes(std::span(into)),
            [&](bool is_hit) { box.put(is_hit); });
  return *box.take();
}

/// True if the tier has the record, whole and right.
bool has(PeerTier& tier, std::uint64_t number, std::size_t bytes) {
  std::string into(bytes, ' ');
  if (!find(tier, number, into)) return false;
  EXPECT_TRUE(into == record_of(number, bytes)) << "wrong bytes";
  return true;
}

/// Inserts, and waits until that is answered.
void insert(PeerTier& tier, std::uint64_t number, std::size_t bytes) {
  const auto answered = [&] {
    const PeerCounts counts = tier.counts();
    return counts.inserts + counts.refused + counts.unsent;
  };
  const std::uint64_t before = answered();
  tier.insert(key_of(number), as_bytes(record_of(number, bytes)));
  while (answered() == before) std::this_thread::yield();
}

/// As the server counts them: a piece is one.
std::uint64_t items_in(const ServerProcess& server) {
  const std::string& name = server.name();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(
      static_cast<std::uint16_t>(std::stoi(name.substr(name.find(':') + 1))));
  const OwnedFd fd(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(
      connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  EXPECT_GT(send(fd.get(), "stats\r\n", 7, MSG_NOSIGNAL), 0);
  std::string said;
  while (said.find("END\r\n") == std::string::npos) {
    std::array<char, 4096> some{};
    const ssize_t got = recv(fd.get(), some.data(), some.size(), 0);
    if (got <= 0) break;
    said.append(some.data(), static_cast<std::size_t>(got));
  }
  const std::string what = "STAT curr_items ";
  const std::size_t at = said.find(what);
  EXPECT_NE(at, std::string::npos) << said;
  return at == std::string::npos ? 0
                                 : std::stoull(said.substr(at + what.size()));
}

TEST(PeerTierTest, KeepsRecordsOfAllSizesOverSeveralServers) {
  const auto a = start_server();
  const auto b = start_server();
  const auto c = start_server();
  const auto tier = open_tier({a->name(), b->name(), c->name()});
  const std::vector<std::size_t> sizes = {1,       100,       127'999,  128'000,
                                          128'001, 1'000'000, 5'000'000};

  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_FALSE(has(*tier, i, sizes[i]));
    insert(*tier, i, sizes[i]);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(has(*tier, i, sizes[i])) << sizes[i];
    std::string other(sizes[i] + 1, ' ');
    EXPECT_FALSE(find(*tier, i, other)) << "a record of another length";
  }

  EXPECT_EQ(tier->capacity_bytes(), 3 * 64 * kMiB);
  EXPECT_EQ(tier->counts().hits, sizes.size());
  EXPECT_EQ(tier->counts().inserts, sizes.size());
}

TEST(PeerTierTest, OthersFindWhatOneInserted) {
  const auto a = start_server();
  const auto b = start_server();
  const auto writer = open_tier({a->name(), b->name()});
  const auto reader = open_tier({b->name(), a->name()});  // In another order.

  for (std::uint64_t i = 0; i < 50; ++i) insert(*writer, i, 1000);

  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_TRUE(has(*reader, i, 1000));
}

TEST(PeerTierTest, APlanSaysOnWhichServerARecordLies) {
  const auto a = start_server();
  const auto b = start_server();
  const auto tier = open_tier({a->name(), b->name()});
  const auto only_a = open_tier({a->name()});
  const auto only_b = open_tier({b->name()});
  const auto placed = [&](std::size_t server, std::uint64_t number) {
    std::string into(1000, ' ');
    ReplyBox<Result<bool>> box;
    tier->find(
        key_of(number), std::as_writable_bytes(std::span(into)),
        [&](bool is_hit) { box.put(is_hit); }, server);
    return *box.take();
  };
  const auto insert_at = [&](std::size_t server, std::uint64_t number) {
    const std::uint64_t before = tier->counts().inserts;
    tier->insert(key_of(number), as_bytes(record_of(number, 1000)), server);
    while (tier->counts().inserts == before) std::this_thread::yield();
  };

  // Keys alone would draw both servers for either ten.
  for (std::uint64_t i = 0; i < 10; ++i) insert_at(0, i);
  for (std::uint64_t i = 10; i < 20; ++i) insert_at(1, i);

  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(placed(i < 10 ? 0 : 1, i));
    EXPECT_TRUE(has(i < 10 ? *only_a : *only_b, i, 1000));
  }
  tier->drop(key_of(0), 1000, 0);
  tier->drop(key_of(10), 1000, 1);
  // Answered after the drops: one connection to a server.
  EXPECT_FALSE(placed(0, 0));
  EXPECT_FALSE(placed(1, 10));
}

TEST(PeerTierTest, OfManyWhoMissOneBringsIt) {
  constexpr int kRanks = 4;
  const auto server = start_server();
  std::vector<std::unique_ptr<PeerTier>> ranks;
  ranks.reserve(kRanks);
  for (int i = 0; i < kRanks; ++i) ranks.push_back(open_tier({server->name()}));
  std::atomic<int> brought = 0;
  std::latch all(kRanks);
  std::vector<std::jthread> threads;
  threads.reserve(kRanks);

  for (const auto& rank : ranks) {
    threads.emplace_back([&] {
      all.arrive_and_wait();
      for (std::uint64_t i = 0; i < 100; ++i) {
        if (has(*rank, i, 3000)) continue;
        brought.fetch_add(1);
        insert(*rank, i, 3000);
      }
    });
  }
  threads.clear();

  EXPECT_EQ(brought.load(), 100);
}

TEST(PeerTierTest, DropsRecords) {
  const auto server = start_server();
  const auto tier = open_tier({server->name()});
  insert(*tier, 1, 300'000);
  insert(*tier, 2, 300'000);

  tier->drop(key_of(1), 300'000);

  EXPECT_FALSE(has(*tier, 1, 300'000));
  EXPECT_TRUE(has(*tier, 2, 300'000));
}

TEST(PeerTierTest, DropsEveryPieceOfARecord) {
  const auto server = start_server();
  const auto tier = open_tier({server->name()});
  insert(*tier, 1, 300'000);
  insert(*tier, 2, 300'000);
  ASSERT_EQ(items_in(*server), 6u);

  tier->drop(key_of(1), 300'000);
  EXPECT_TRUE(has(*tier, 2, 300'000));  // Answered after the drop.

  EXPECT_EQ(items_in(*server), 3u);
}

TEST(PeerTierTest, AServerThatIsFullRefusesAndKeepsWhatItHas) {
  const auto server = start_server(16 * kMiB);
  const auto tier = open_tier({server->name()});

  for (std::uint64_t i = 0; i < 200; ++i) insert(*tier, i, 100'000);

  const PeerCounts counts = tier->counts();
  EXPECT_GT(counts.inserts, 100u);
  EXPECT_GT(counts.refused, 10u);
  EXPECT_EQ(counts.inserts + counts.refused, 200u);
  for (std::uint64_t i = 0; i < counts.inserts; ++i) {
    EXPECT_TRUE(has(*tier, i, 100'000)) << i;
  }
}

TEST(PeerTierTest, KeepsTheSameShareForAllWhereThereIsTooMuch) {
  const auto server = start_server(16 * kMiB);
  PeerOptions options{.servers = {server->name()}};
  options.settings.patience = kPatient;
  options.dataset_bytes = 48 * kMiB;  // 0.9 * 16 / 48: 0.3 of it has room.
  auto first = *PeerTier::open(options);
  auto second = *PeerTier::open(options);
  ASSERT_TRUE(first->wait_for_servers(kPatient));
  ASSERT_TRUE(second->wait_for_servers(kPatient));

  for (std::uint64_t i = 0; i < 1000; ++i) {
    if (!has(*first, i, 100)) {
      first->insert(key_of(i), as_bytes(record_of(i, 100)));
    }
  }
  const std::uint64_t asked = 1000 - first->counts().not_kept;
  EXPECT_NEAR(static_cast<double>(asked), 300, 90);
  while (first->counts().inserts < asked) std::this_thread::yield();
  for (std::uint64_t i = 0; i < 1000; ++i) (void)has(*second, i, 100);

  EXPECT_EQ(second->counts().hits, asked);
  EXPECT_EQ(second->counts().not_kept, 1000 - asked);
}

TEST(PeerTierTest, AServerThatIsNotThereCostsMissesAndComesByItself) {
  auto server = start_server();
  const std::string name = server->name();
  const auto port =
      static_cast<std::uint16_t>(std::stoi(name.substr(name.find(':') + 1)));
  const auto tier = open_tier({name});
  insert(*tier, 1, 1000);
  ASSERT_TRUE(has(*tier, 1, 1000));

  server.reset();
  while (tier->counts().outages == 0) std::this_thread::yield();
  EXPECT_FALSE(has(*tier, 1, 1000));
  insert(*tier, 1, 1000);
  EXPECT_EQ(tier->counts().unreachable, 1u);
  EXPECT_EQ(tier->counts().unsent, 1u);

  auto again =
      ServerProcess::start({.port = port, .patience = kPatient}, process_env());
  ASSERT_TRUE(again) << again.error().message();
  // By itself: nobody asks for anything until it is there.
  while (!tier->wait_for_servers(1ms)) std::this_thread::yield();
  EXPECT_FALSE(has(*tier, 1, 1000));
  insert(*tier, 1, 1000);
  EXPECT_TRUE(has(*tier, 1, 1000));
}

TEST(PeerTierTest, AServerThatIsStoppedIsWaitedForOnceOnly) {
  const auto server = start_server();
  const auto tier = open_tier({server->name()}, 200ms);
  while (!tier->wait_for_servers(1ms)) std::this_thread::yield();

  kill(server->pid(), SIGSTOP);
  EXPECT_FALSE(has(*tier, 1, 1000));
  // It still takes connections; operations are answered all the same.
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_FALSE(has(*tier, i, 1000));
  // But for those, if any, that met it while it was being tried again.
  EXPECT_GE(tier->counts().unreachable, 900u);
  EXPECT_EQ(tier->counts().outages, 1u);
  kill(server->pid(), SIGCONT);
  while (!tier->wait_for_servers(1ms)) std::this_thread::yield();

  EXPECT_EQ(tier->counts().outages, 1u);
}

/// Listens, and sends `reply` over and over to each client.
class FalseServer {
 public:
  explicit FalseServer(std::string reply)
      : reply_(std::move(reply)), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, any, size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    getsockname(fd_, any, &size);
    name_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::jthread([this] { run(); });
  }
  ~FalseServer() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  FalseServer(const FalseServer&) = delete;
  FalseServer& operator=(const FalseServer&) = delete;

  const std::string& name() const { return name_; }
  int connections() const { return connections_.load(); }

 private:
  void run() {
    for (int peer = -1; (peer = accept(fd_, nullptr, nullptr)) >= 0;) {
      connections_.fetch_add(1);
      std::vector<char> ignored(4096);
      while (recv(peer, ignored.data(), ignored.size(), 0) > 0) {
        if (send(peer, reply_.data(), reply_.size(), MSG_NOSIGNAL) < 0) break;
      }
      close(peer);
    }
  }

  const std::string reply_;
  const int fd_;
  std::string name_;
  std::atomic<int> connections_ = 0;
  std::jthread thread_;
};

TEST(PeerTierTest, WhatIsNoMemcachedIsAMiss) {
  for (const auto* reply :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "END\r\nVA 5\r\nhello\r\n",
        "STAT maxbytes 1\r\n"}) {
    const FalseServer server(reply);
    const auto tier = open_tier({server.name()}, 300ms);

    EXPECT_FALSE(has(*tier, 1, 5)) << reply;
  }
}

TEST(PeerTierTest, ItIsTriedAgainWithABackOff) {
  const FalseServer server("no\r\n");
  const auto tier = open_tier({server.name()});

  while (server.connections() < 3) std::this_thread::yield();

  EXPECT_FALSE(tier->wait_for_servers(1ms));
}

TEST(PeerTierTest, DestructionAnswersAll) {
  const auto server = start_server();
  auto tier = open_tier({server->name()});
  ASSERT_TRUE(tier->wait_for_servers(kPatient));
  kill(server->pid(), SIGSTOP);
  std::vector<std::string> into(100, std::string(1000, ' '));
  std::atomic<int> misses = 0;
  for (std::uint64_t i = 0; i < into.size(); ++i) {
    tier->find(key_of(i), std::as_writable_bytes(std::span(into[i])),
               [&](bool is_hit) { misses.fetch_add(is_hit ? 0 : 1); });
  }

  tier.reset();

  EXPECT_EQ(misses.load(), 100);
  kill(server->pid(), SIGCONT);
}

TEST(PeerTierTest, SaysWhatIsWrongWithServers) {
  const auto none = PeerTier::open({});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("names no server"));

  const auto bad = PeerTier::open({.servers = {"good:1", "http://x"}});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(bad.error().message(), HasSubstr("http://x"));
}

TEST(PeerTierTest, RefusesWhatWasNotSealedWithItsSecret) {
  const auto server = start_server();
  const auto forger = open_tier({server->name()});
  const auto ours = open_tier({server->name()}, kPatient, "a secret");
  const auto same = open_tier({server->name()}, kPatient, "a secret");
  insert(*forger, 1, 200'000);

  EXPECT_FALSE(has(*ours, 1, 200'000));
  EXPECT_EQ(ours->counts().wrong, 1u);

  insert(*ours, 1, 200'000);  // In its place.
  EXPECT_TRUE(has(*same, 1, 200'000));
  EXPECT_FALSE(has(*forger, 1, 200'000));
}

}  // namespace
}  // namespace leat
