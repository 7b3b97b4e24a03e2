#include "leat/plan/wait_model.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

/// Runs `steps` steps of `gets` GETs each, with one rank.
WaitModel run_model(const TimeOptions& options, int steps, int gets,
                    std::uint64_t bytes = 1) {
  WaitModel model(options, 1, 1);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < gets; ++i) model.need(0, Source::kStore, bytes);
    model.end_step();
  }
  return model;
}

TEST(WaitModelTest, WithoutPrefetchEveryStepWaitsForItsData) {
  const WaitModel model = run_model({.compute_seconds = 1,
                                     .get_seconds = 0.5,
                                     .max_in_flight = 1,
                                     .prefetch_steps = 0},
                                    /*steps=*/3, /*gets=*/4);

  EXPECT_DOUBLE_EQ(model.wait_seconds(), 3 * 2.0);
  EXPECT_DOUBLE_EQ(model.seconds(), 3 * (2.0 + 1.0));
}

TEST(WaitModelTest, ManyInFlightTakeAsLongAsOne) {
  const WaitModel model = run_model({.compute_seconds = 1,
                                     .get_seconds = 0.5,
                                     .max_in_flight = 4,
                                     .prefetch_steps = 0},
                                    3, 4);

  EXPECT_DOUBLE_EQ(model.wait_seconds(), 3 * 0.5);
}

TEST(WaitModelTest, AStepAheadHidesWhatFitsIntoCompute) {
  const WaitModel model = run_model({.compute_seconds = 1,
                                     .get_seconds = 0.5,
                                     .max_in_flight = 2,
                                     .prefetch_steps = 1},
                                    3, 4);

  // Two rounds of 0.5 s a step: the first is waited for, the others hide.
  EXPECT_DOUBLE_EQ(model.wait_seconds(), 1.0);
  EXPECT_DOUBLE_EQ(model.seconds(), 4.0);
}

TEST(WaitModelTest, WhatDoesNotFitIsWaitedFor) {
  const WaitModel model = run_model({.compute_seconds = 1,
                                     .get_seconds = 0.5,
                                     .max_in_flight = 1,
                                     .prefetch_steps = 1},
                                    3, 4);

  // 2 s of GETs a step, one of them behind compute.
  EXPECT_DOUBLE_EQ(model.wait_seconds(), 2.0 + 1.0 + 1.0);
}

TEST(WaitModelTest, ABandwidthIsALimitHoweverManyAreInFlight) {
  const WaitModel model = run_model({.get_seconds = 0.75,
                                     .bytes_per_second = 100,
                                     .max_in_flight = 1000,
                                     .prefetch_steps = 0},
                                    1, 10, /*bytes=*/50);

  // The first is there after 0.75 s; then come 450 bytes at 100 a second.
  EXPECT_DOUBLE_EQ(model.wait_seconds(), 0.75 + 4.5);
}

TEST(WaitModelTest, TheStoreSendsToAllNodesThroughOneLink) {
  WaitModel model(
      {.get_seconds = 0.75, .store_bytes_per_second = 100, .prefetch_steps = 0},
      2, 1);
  for (int i = 0; i < 5; ++i) model.need(0, Source::kStore, 50);
  for (int i = 0; i < 5; ++i) model.need(1, Source::kStore, 50);
  // A peer's bytes do not go through it.
  model.need(0, Source::kPeer, 1000000, 1);
  model.end_step();

  EXPECT_DOUBLE_EQ(model.wait_seconds(), 0.75 + 4.5);
}

TEST(WaitModelTest, EachNodeSendsThroughALinkOfItsOwn) {
  WaitModel model(
      {.peer_seconds = 0.75, .peer_bytes_per_second = 100, .prefetch_steps = 0},
      3, 1);
  for (int i = 0; i < 10; ++i) model.need(0, Source::kPeer, 50, 1);
  model.end_step();
  EXPECT_DOUBLE_EQ(model.wait_seconds(), 0.75 + 4.5);
  for (int i = 0; i < 5; ++i) model.need(0, Source::kPeer, 50, 1);
  for (int i = 0; i < 5; ++i) model.need(0, Source::kPeer, 50, 2);
  model.end_step();
  EXPECT_DOUBLE_EQ(model.wait_seconds(), 0.75 + 4.5 + 0.75 + 2.0);
}

TEST(WaitModelTest, PeersAreAskedBesideTheGetsInFlight) {
  WaitModel model({.get_seconds = 1,
                   .peer_seconds = 0.5,
                   .max_in_flight = 1,
                   .prefetch_steps = 0},
                  1, 1);
  for (int i = 0; i < 4; ++i) model.need(0, Source::kPeer, 1);
  model.need(0, Source::kStore, 1);
  model.end_step();

  EXPECT_DOUBLE_EQ(model.wait_seconds(), 1.0);
}

// A rank that waits for its own places leaves the link to the others.
TEST(WaitModelTest, WhoWaitsForAPlaceHoldsUpNobodyElse) {
  WaitModel model({.get_seconds = 1,
                   .store_bytes_per_second = 1000,
                   .max_in_flight = 1,
                   .prefetch_steps = 0},
                  2, 1);
  for (int i = 0; i < 5; ++i) model.need(0, Source::kStore, 1);
  for (int i = 0; i < 5; ++i) model.need(1, Source::kStore, 1);
  model.end_step();

  EXPECT_NEAR(model.wait_seconds(), 5.0, 0.01);
}

TEST(WaitModelTest, TheSlowestRankHoldsAllUp) {
  WaitModel model({.get_seconds = 1, .max_in_flight = 1, .prefetch_steps = 0},
                  2, 1);
  model.need(0, Source::kStore, 1);
  for (int i = 0; i < 3; ++i) model.need(1, Source::kStore, 1);
  model.end_step();

  EXPECT_DOUBLE_EQ(model.wait_seconds(), 3.0);
}

TEST(WaitModelTest, RequestsInFlightAreOfANode) {
  WaitModel model({.get_seconds = 1, .max_in_flight = 4, .prefetch_steps = 0},
                  4, 2);
  for (int i = 0; i < 8; ++i) model.need(3, Source::kStore, 1);
  model.end_step();

  EXPECT_DOUBLE_EQ(model.wait_seconds(), 4.0);  // Two at a time, of a rank.
}

TEST(WaitModelTest, HitsAndPeersTakeTheirOwnTime) {
  WaitModel model({.get_seconds = 1,
                   .peer_seconds = 0.5,
                   .hit_seconds = 0.1,
                   .max_in_flight = 1,
                   .prefetch_steps = 0},
                  1, 1);
  model.need(0, Source::kTier, 1);
  model.need(0, Source::kTier, 1);
  model.end_step();
  EXPECT_DOUBLE_EQ(model.wait_seconds(), 0.2);
  model.need(0, Source::kPeer, 1);
  model.end_step();
  EXPECT_DOUBLE_EQ(model.wait_seconds(), 0.7);
}

}  // namespace
}  // namespace leat
