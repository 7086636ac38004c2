#include "kernels/drift_lists.hpp"

#include "kernels/drift_update.hpp"
#include "kernels/drift_visit.hpp"

namespace fewfire::FEWFIRE_ISA {

void drift_start(const DriftNet& net, DriftPiece& piece) {
  piece.scores.resize(block_rows * net.columns);
  piece.picked.resize(2 * net.examples);
  piece.bits.assign((net.examples + 63) / 64, 0);
  for_scored(
      net, piece, piece.end - piece.begin, [&](std::size_t k) { return piece.begin + k; },
      [&](std::size_t k, const float* scores) {
        DriftSlot slot{};
        DriftBound bound{};
        slot.neuron = static_cast<std::uint32_t>(piece.begin + k);
        slot.skin = net.first_skin;
        build_list(net, piece, slot, bound, scores);
        if (slot.length == 0) return;
        piece.slots.push_back(slot);
        piece.bounds.push_back(bound);
      });
  piece.codes.resize(piece.slots.size());
  piece.code_rows.assign(piece.slots.size() * net.code_stride, 0);
  for (std::size_t slot = 0; slot < piece.slots.size(); ++slot) encode(net, piece, slot);
}

void drift_pass(const DriftNet& net, DriftPiece& piece, const DriftCall& call, bool gradients) {
  plan(net, piece, call);
  const std::size_t stride = net.stride;
  const std::uint64_t before = piece.counts.active;
  piece.values.assign(net.examples, 0.0);
  const auto add_values = [&](const DriftVisit& visit, const std::uint32_t* ids, const float* scores, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) piece.values[ids[k]] += static_cast<double>(visit.output) * scores[k];
  };
  if (!gradients)
    return visit_all(net, piece, call,
                     [&](const DriftVisit& visit, const float*, const std::uint32_t* ids, const float* scores,
                         std::size_t count) { add_values(visit, ids, scores, count); });
  piece.gradients.assign(net.examples * stride, 0.0f);
  float* sums = piece.gradients.data();
  visit_all(net, piece, call,
            [&](const DriftVisit& visit, const float* w, const std::uint32_t* ids, const float* scores,
                std::size_t count) {
              add_values(visit, ids, scores, count);
              const Floats output = spread(visit.output);
              for (std::size_t k = 0; k < count; ++k)
                for (std::size_t at = 0; at < stride; at += lanes) {
                  float* sum = sums + ids[k] * stride + at;
                  store(sum, load(sum) + output * load(w + at));
                }
            });
  piece.counts.summed += piece.counts.active - before;
}

void drift_codes(const DriftNet& net, DriftCall& call, std::uint8_t* codes) {
  if constexpr (!can_screen) return;
  float largest = 0.0f;
  for (std::size_t k = 0; k < net.examples * net.stride; ++k) largest = std::max(largest, std::abs(call.rows[k]));
  const float scale = largest > 1e-30f ? largest / 127.0f : 1.0f, inverse = 1.0f / scale;
  float farthest = 0.0f;
  for (std::size_t i = 0; i < net.examples; ++i) {
    Floats squares{};
    for (std::size_t at = 0; at < net.stride; at += lanes)
      for (std::size_t k = 0; k < lanes; ++k) {
        const float x = call.rows[i * net.stride + at + k], rounded = std::nearbyint(x * inverse);
        const float error = x - scale * rounded;
        squares[k] += error * error;
        codes[i * net.code_stride + at + k] = static_cast<std::uint8_t>(static_cast<std::int32_t>(rounded) + 128);
      }
    farthest = std::max(farthest, sum_lanes(squares));
  }
  call.code_scale = scale;
  // Where x and scale·code cancel, their difference keeps the rounding of the product.
  call.code_error = std::sqrt(farthest) * (1.0f + net.rounding) + net.rounding * net.norm_limit + tiny;
}

void drift_update(DriftNet& net, DriftPiece& piece, const DriftCall& call, const float* slopes, float rate) {
  const std::size_t stride = net.stride;
  for (std::size_t at = 0; at < piece.visits.size(); ++at) {
    const std::uint32_t begin = at == 0 ? 0 : piece.active_ends[at - 1], end = piece.active_ends[at];
    const std::size_t soon = at + 2 * ahead;  // most lists read did not fire
    if (soon < piece.visits.size() && piece.active_ends[soon] > piece.active_ends[soon - 1])
      prefetch_row(net, piece.visits[soon]);
    if (begin == end) continue;
    const DriftVisit& visit = piece.visits[at];
    float* w = net.weights.data() + visit.neuron * stride;
    std::uint32_t* ids = piece.active.data() + begin;
    const std::size_t count = end - begin;
    sort_ids(ids, count, piece.bits);
    const float factor = -rate * visit.output;
    Floats squares{};
    std::size_t from = 0;
    for (; from + 4 * lanes <= stride; from += 4 * lanes)
      squares += descend<4>(w + from, call.rows + from, stride, ids, slopes, count, factor);
    for (; from < stride; from += lanes)
      squares += descend<1>(w + from, call.rows + from, stride, ids, slopes, count, factor);
    float& moved = piece.bounds[visit.slot].moved;
    moved = (moved + norm_above(net, squares)) * up;
    piece.counts.updated += 1;
    piece.counts.summed += count;
  }
}

bool drift_missing(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, std::uint64_t* pair) {
  std::vector<std::uint32_t> all(net.examples), active(net.examples + pairs), kept(net.examples + pairs);
  std::vector<float> scores(net.examples + pairs);
  std::vector<bool> listed(net.examples);
  for (std::uint32_t i = 0; i < net.examples; ++i) all[i] = i;
  std::size_t k = 0;
  for (std::size_t neuron = piece.begin; neuron < piece.end; ++neuron) {
    while (k < piece.slots.size() && piece.slots[k].neuron < neuron) ++k;
    std::fill(listed.begin(), listed.end(), false);
    if (k < piece.slots.size() && piece.slots[k].neuron == neuron) {
      const DriftSlot& slot = piece.slots[k];
      const float depth = need(net, piece.bounds[k], call, piece.bounds[k].moved);
      if (!in_range(slot, depth)) continue;  // refreshed before it is read again
      DriftVisit visit{static_cast<std::uint32_t>(k), slot.neuron, slot.first, 0, net.bias[neuron], 0.0f, 0, false};
      if (depth >= piece.bounds[k].top) visit.length = entries_to(net, slot, depth);
      set_cutoff(net, piece, call, depth, visit);
      const std::uint32_t* ids = piece.ids.data() + slot.first;
      std::size_t count = visit.length;
      if (visit.screened) {
        count = screen(piece.code_rows.data() + k * net.code_stride, call.codes, net.code_stride, visit.cutoff, ids, count,
                       kept.data());
        ids = kept.data();
      }
      for (std::size_t j = 0; j < count; ++j) listed[ids[j]] = true;
    }
    const std::size_t count = select_active(net.weights.data() + neuron * net.stride, net.bias[neuron], net.threshold,
                                            call.rows, net.stride, all.data(), all.size(), active.data(), scores.data());
    for (std::size_t j = 0; j < count; ++j)
      if (!listed[active[j]]) {
        pair[0] = neuron;
        pair[1] = active[j];
        return true;
      }
  }
  return false;
}

}  // namespace fewfire::FEWFIRE_ISA
