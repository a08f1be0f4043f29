// The sums over entries of a half-step for K = 64, by hand: what kernel_twin.py compares ours with.
//
// Per row u: totals_u = sum_i (E[n_ui] / dot_ui) h_i with dot_ui = g_u . h_i. One function per kind
// of table; float32 throughout, with sums in float64 per row; four entries at a time, whose rows of
// h stay in registers between the dot products and the sums. No posteriors, no slow path, no
// partial pooling. GCC splits vectors of 64 bytes where the machine has none.

#include <cstdint>
#include <cstring>

namespace {

constexpr int K = 64, LANES = 16, VECTORS = K / LANES;
constexpr int64_t SOON = 8, LATER = 32;  // entries ahead: into the first and the second cache
typedef float Wide __attribute__((vector_size(4 * LANES)));
typedef int32_t WideIndex __attribute__((vector_size(4 * LANES)));
typedef double WideDouble __attribute__((vector_size(8 * LANES)));
typedef float Four __attribute__((vector_size(16), aligned(4)));
typedef int32_t FourInts __attribute__((vector_size(16)));

struct Entries {
    const int64_t *start, *stop;
    const int32_t *index;
    const float *coordinate;
    int64_t rows, size;
};

struct Table {  // cubic pieces of E[n] in the rate; see hcpf.core.count_tables
    const float *pieces;
    int64_t segments, size;
    int32_t first_code;
    float low, high;
};

enum Mode { KNOWN, ROWS, SHIFT };  // the coordinate is n; is the row of the table; multiplies x

// The sums of the lanes of four vectors.
Four sum_each(Wide a, Wide b, Wide c, Wide d) {
    const WideIndex low16 = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
    const WideIndex low8 = {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27};
    const WideIndex swap2 = {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13};
    const WideIndex swap1 = {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14};
    Wide ab = __builtin_shuffle(a, b, low16) + __builtin_shuffle(a, b, low16 + 8);
    Wide cd = __builtin_shuffle(c, d, low16) + __builtin_shuffle(c, d, low16 + 8);
    Wide four = __builtin_shuffle(ab, cd, low8) + __builtin_shuffle(ab, cd, low8 + 4);
    four += __builtin_shuffle(four, swap2);
    four += __builtin_shuffle(four, swap1);
    return Four{four[0], four[4], four[8], four[12]};
}

template <Mode mode>
inline Four expected_count(const Table &table, Four x, Four y) {
    if (mode == KNOWN) return y;
    if (mode == SHIFT) x *= y;
    FourInts bits;
    memcpy(&bits, &x, sizeof bits);
    FourInts piece = (bits >> 20) - table.first_code;
    if (mode == ROWS) piece += __builtin_convertvector(y, FourInts) * (int32_t)table.segments;
    const FourInts last = FourInts{} + (int32_t)(table.size - 1), zero = {};
    piece = piece < zero ? zero : piece;
    piece = piece > last ? last : piece;
    Four t = __builtin_convertvector(bits & 0xFFFFF, Four) * (1.0f / (1 << 20));
    Four c[4];
    for (int i = 0; i < 4; i++) c[i] = *(const Four *)(table.pieces + 4 * (int64_t)piece[i]);
    Four low01 = __builtin_shuffle(c[0], c[1], FourInts{0, 4, 1, 5});
    Four low23 = __builtin_shuffle(c[2], c[3], FourInts{0, 4, 1, 5});
    Four high01 = __builtin_shuffle(c[0], c[1], FourInts{2, 6, 3, 7});
    Four high23 = __builtin_shuffle(c[2], c[3], FourInts{2, 6, 3, 7});
    Four c0 = __builtin_shuffle(low01, low23, FourInts{0, 1, 4, 5});
    Four c1 = __builtin_shuffle(low01, low23, FourInts{2, 3, 6, 7});
    Four c2 = __builtin_shuffle(high01, high23, FourInts{0, 1, 4, 5});
    Four c3 = __builtin_shuffle(high01, high23, FourInts{2, 3, 6, 7});
    Four value = (c3 * t + c2) * (t * t) + (c1 * t + c0);
    return (x >= table.low) & (x < table.high) ? value : Four{} - 1.0f;
}

// The totals of row u go to row u % kept. Returns whether some entry had a rate outside the
// table, which ours would do slowly.
template <Mode mode>
int64_t half_step(const Entries &entries, const float *g, const float *h, const float *terms,
                  const float *own_terms, const Table &table, double *totals, int64_t kept,
                  double *counts) {
    FourInts failed = {};
    const int64_t last_ahead = entries.size - 4;
    for (int64_t u = 0; u < entries.rows; u++) {
        Wide own[VECTORS], sums[VECTORS] = {};
        memcpy(own, g + u * K, sizeof own);
        const float row_scale = own_terms[4 * u];
        Four count = {};
        const int64_t stop = entries.stop[u];
        for (int64_t e = entries.start[u]; e < stop; e += 4) {
            const float *row[4];
            Four y, scale = {}, dots, weight;
            Wide here[4][VECTORS], dot[4] = {};
            const int64_t soon = e + SOON < last_ahead ? e + SOON : last_ahead;
            const int64_t later = e + LATER < last_ahead ? e + LATER : last_ahead;
            for (int j = 0; j < 4; j++) {
                const int64_t at = e + j < stop ? e + j : stop - 1;
                const int64_t i = entries.index[at];
                row[j] = h + i * K;
                y[j] = entries.coordinate[at];
                if (mode != KNOWN) scale[j] = terms[4 * i];
                const int64_t far = entries.index[later + j];
                const float *near_row = h + K * (int64_t)entries.index[soon + j];
                const float *far_row = h + K * far;
                for (int v = 0; v < VECTORS; v++) {
                    __builtin_prefetch(near_row + v * LANES, 0, 3);
                    __builtin_prefetch(far_row + v * LANES, 0, 2);
                }
                if (mode != KNOWN) __builtin_prefetch(terms + 4 * far, 0, 2);
            }
            for (int v = 0; v < VECTORS; v++)
                for (int j = 0; j < 4; j++) {
                    here[j][v] = *(const Wide *)(row[j] + v * LANES);
                    dot[j] += own[v] * here[j][v];
                }
            dots = sum_each(dot[0], dot[1], dot[2], dot[3]);
            Four mean = expected_count<mode>(table, dots * (scale * row_scale), y);
            const FourInts lanes = {0, 1, 2, 3};
            const FourInts holds = (mean >= 0.0f) & (dots > 1e-26f);
            failed |= ~holds;
            mean = (lanes < (int32_t)(stop - e > 4 ? 4 : stop - e)) ? mean : Four{};
            weight = mean / dots;
            count += mean;
            for (int v = 0; v < VECTORS; v++)
                for (int j = 0; j < 4; j++) sums[v] += weight[j] * here[j][v];
        }
        for (int v = 0; v < VECTORS; v++) {
            WideDouble wide = __builtin_convertvector(sums[v], WideDouble);
            memcpy(totals + u % kept * K + v * LANES, &wide, sizeof wide);
        }
        counts[u] = (double)count[0] + count[1] + count[2] + count[3];
    }
    return failed[0] | failed[1] | failed[2] | failed[3];
}

}  // namespace

extern "C" int64_t twin(int mode, const Entries *entries, const float *g, const float *h,
                        const float *terms, const float *own_terms, const Table *table,
                        double *totals, int64_t kept, double *counts) {
    auto run = mode == KNOWN ? half_step<KNOWN> : mode == ROWS ? half_step<ROWS> : half_step<SHIFT>;
    return run(*entries, g, h, terms, own_terms, *table, totals, kept, counts);
}
