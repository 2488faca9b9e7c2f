/* Written by tools/make-normal-tails.R; do not edit. See base/normal_tails.c. */
#ifndef NOISEAWARE_BASE_NORMAL_TABLES_H
#define NOISEAWARE_BASE_NORMAL_TABLES_H

enum { MILLS_TERMS = 16 };
static const double MILLS_FAR = 9, MILLS_MIDDLE = 4.5;
/* z = slope u + shift, u = (x - middle) / (x + middle) */
static const double MILLS_SLOPE = 0x1.8p+0, MILLS_SHIFT = 0x1.0000000000001p-1;
/* of z^0, z^1, ... */
static const double MILLS[MILLS_TERMS] = {
    0x1.8a6450445bc1dp-2,
    -0x1.cd163e78e776ep-2,
    0x1.08f3bcb5cbb9dp-2,
    -0x1.d0f830872b953p-4,
    0x1.2e3836dafe3f8p-5,
    -0x1.08ed82ee9d8dep-7,
    0x1.a9a91f7f038fcp-11,
    0x1.f850b2acce155p-14,
    -0x1.7f892962a6c98p-15,
    -0x1.326eaf6f5d82bp-21,
    0x1.1040023ec013fp-19,
    -0x1.0e165f3952189p-25,
    -0x1.a818fbcd3e179p-24,
    -0x1.303b0319eaa22p-31,
    0x1.2e365d963eec6p-28,
    0x1.076bef4de93c2p-32};

#endif
