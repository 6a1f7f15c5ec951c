// Who has a device's memory, in words.
#include "preload/base/room_figures.h"

#include "tests/support/test.h"

namespace reprise {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(RoomFigures, SaysWhoHasWhatOfTheDevice) {
  EXPECT_EQ(who_has_the_rest({36 * kMiB, 18 * kMiB, kMiB, 17 * kMiB}),
            "of its 36.0 MiB other programs and the driver hold 18.0 MiB, and 1.0 MiB are kept free for the driver");
  EXPECT_EQ(who_has_the_rest({36 * kMiB, 0, kMiB, 35 * kMiB}), "of its 36.0 MiB 1.0 MiB are kept free for the driver")
      << "nobody else holds any of it";
  EXPECT_EQ(who_has_the_rest({}), "other programs and the driver hold the rest");
}

// Others are waited for only where they hold enough.
TEST(RoomFigures, SaysHowToGetRoom) {
  const std::string wait = "run it when other programs have ended, or on a device with more memory";
  const std::string larger = "run it on a device with more memory";
  EXPECT_EQ(how_to_get_room({36 * kMiB, 18 * kMiB, kMiB, 17 * kMiB}, 35 * kMiB), wait);
  EXPECT_EQ(how_to_get_room({36 * kMiB, 18 * kMiB, kMiB, 17 * kMiB}, 36 * kMiB), larger);
  EXPECT_EQ(how_to_get_room({36 * kMiB, 0, kMiB, 35 * kMiB}, 36 * kMiB), larger);
  EXPECT_EQ(how_to_get_room({}, kMiB), wait) << "it is not known who holds it";
}

}  // namespace
}  // namespace reprise
