#!/usr/bin/env python3
"""Plants known bugs, one at a time, and expects a test to notice each.

    ./dev mutants              all of them
    ./dev mutants fence rnr    those whose name contains one of the words

A mutant is a replacement of one piece of source text. It is applied to a copy of the tree, the transport's
tests and the swarm are built there and run, and at least one must fail. A mutant that survives means that
nothing tests this line. A mutant whose text is no longer there is an error: whoever changed the line moves
its mutant along.
"""
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build-mutants"
TREE = WORK / "tree"
BUILD = WORK / "build"

# (name, file, what is there, what a careless hand might have written)
MUTANTS = [
    ("read_response_in_mid_message_is_a_gap", "src/core/transport/rc/acknowledge.cc",
     "        answered = reach >= to;", "        answered = false;"),
    ("repairs_wait_for_path_credit", "src/core/transport/rc/requester.cc",
     "  if (fresh && path.bounded()) {", "  if (path.bounded()) {"),
    ("a_read_piece_leaves_its_request", "src/core/transport/rc/requester.cc",
     "  const std::uint64_t end = (std::uint64_t{k} / piece + 1) * piece * q.mtu;",
     "  const std::uint64_t end = (std::uint64_t{k} + piece) * q.mtu;"),
    ("a_fence_holds_up_its_own_repair", "src/core/transport/rc/requester.cc",
     "  if (k == 0 && fresh && (w.flags & kSendFence) != 0", "  if (k == 0 && (w.flags & kSendFence) != 0"),
    ("irn_forgets_what_it_kept", "src/core/transport/loss/selective.cc",
     "  c.pool.set(r.block, seq, message_end);", "  c.pool.set(r.block, seq, message_end && r.held > 100);"),
    ("irn_places_a_duplicate", "src/core/transport/loss/selective.cc",
     "  return c.pool.arrived(r.block, seq) ? Arrival::kDuplicate : Arrival::kKeep;",
     "  return Arrival::kKeep;"),
    ("an_ack_overtakes_read_responses", "src/core/transport/rc/control.cc",
     "  if (!selective && q.responses_owed > 0) {\n    q.set(kAckAfterReads);",
     "  if (!selective && q.responses_owed > 100) {\n    q.set(kAckAfterReads);"),
    ("a_write_may_end_outside", "src/core/transport/key_table.h",
     "|| address - r.address > r.length - length)", "|| address - r.address > r.length)"),
    ("rnr_is_never_exhausted", "src/core/transport/rc/acknowledge.cc",
     "    if (q.rnr_retries >= c.attr.rnr_retry) {", "    if (false) {"),
    ("an_atomic_runs_again", "src/core/transport/rc/responder.h",
     "    if (r.kind == ReadKind::kRead || r.executed || r.state != ReadState::kActive) continue;",
     "    if (r.kind == ReadKind::kRead || r.state != ReadState::kActive) continue;"),
    ("the_window_is_one_too_wide", "src/core/transport/rc/requester.cc",
     "      if (q.sq_send == q.sq_tail || s.nxt - s.una >= window(e, q)) break;",
     "      if (q.sq_send == q.sq_tail || s.nxt - s.una > window(e, q)) break;"),
    ("packets_are_counted_as_messages", "src/core/transport/rc/responder.h",
     "    q.rx_msn = (q.rx_msn + moved.messages) & kPsnMask;", "    q.rx_msn = (q.rx_msn + moved.packets) & kPsnMask;"),
    ("srnic_says_kept_of_what_it_dropped", "src/core/transport/rc/control.cc",
     "kept ? unsigned{wire::kEcxOutOfOrder} : 0U", "unsigned{wire::kEcxOutOfOrder}"),
    ("srnic_echoes_another_packet", "src/core/transport/queue_pair.h",
     "inbound_va = std::uint64_t{o.offset} << 32U | o.msn;", "inbound_va = std::uint64_t{o.offset} << 32U | (o.msn + 1);"),
    ("the_fast_exit_jumps_over_a_hole", "src/core/transport/loss/scheme.h",
     "    if (run.any && stream.expected == run.left) {", "    if (run.any) {"),
    ("uc_takes_an_old_number_for_new", "src/core/transport/uc/responder.h",
     "  if (ahead > kPsnMask - kUcStale) return", "  if (ahead > kPsnMask) return"),
    ("uc_goes_on_after_a_gap", "src/core/transport/uc/responder.h",
     "  if (ahead != 0 || op.first) q.inbound", "  if (op.first) q.inbound"),
    ("uc_completes_what_was_not_gathered", "src/core/transport/uc/requester.cc",
     "  q.sq_send = rc_slot_of(e, q, seq);", "  if (q.sq_send == q.sq_tail) --q.sq_send;"),
    ("presumed_credit_stays_away", "src/core/transport/uc/requester.cc",
     "  if (!e.presumed.empty()) e.arm(q, e.presumed.oldest().until);",
     "  if (e.presumed.empty()) e.arm(q, e.presumed.oldest().until);"),
    ("a_burst_of_datagrams_has_two_paths", "src/core/transport/uc/requester.cc",
     "if (n > 0 && ud_path(w) != q.path) break;", ""),
    ("any_qkey_will_do", "src/core/transport/ud/responder.cc",
     "  if (h.qkey() != c.attr.qkey) return", "  if (false) return"),
    ("the_grh_takes_no_room", "src/core/transport/ud/responder.cc",
     "  if (room < wire::kGrhBytes + p.payload)", "  if (room < p.payload)"),
    ("a_packet_carries_other_bytes", "src/sim/nic/endpoint.cc",
     "memory.at(s.region, s.offset, s.length)", "memory.at(s.region, s.offset / 2, s.length)"),
    ("a_drop_is_not_counted", "src/sim/fabric/switch.cc",
     "    out.count_drop();\n    fabric_.release(t.packet);\n    return;\n  }\n  Transit", "    fabric_.release(t.packet);\n    return;\n  }\n  Transit"),
    ("a_stopped_port_goes_on", "src/sim/fabric/port.cc",
     "  paused_ = on ? before | bit : before & ~bit;", "  paused_ = before & ~bit;"),
    ("a_buffer_forgets_a_class", "src/sim/fabric/switch.cc",
     "  in.class_bytes[k] += t.bytes;", "  in.class_bytes[0] += t.bytes;"),
]

KILLERS = [
    ["src/core/transport/weft_transport_test", "--gtest_brief=1"],
    ["tests/unreliable/weft_unreliable_test", "--gtest_brief=1"],
    ["weft-swarm", "--seeds", "200", "--jobs", "2"],
]
# What the simulator alone does, its own tests must notice.
SIM_KILLERS = [
    ["src/sim/fabric/weft_sim_fabric_test", "--gtest_brief=1"],
    ["weft-fabric-swarm", "--seeds", "100", "--jobs", "2"],
]


def copy_tree():
    """Writes only what differs, so that the build repeats only what it must."""
    wanted = set()
    for part in ("src", "tests", "cmake", "tools", "data", "CMakeLists.txt"):
        source = ROOT / part
        for file in [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file()):
            name = file.relative_to(ROOT)
            wanted.add(name)
            target, content = TREE / name, file.read_bytes()
            if not target.exists() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    for file in [p for p in TREE.rglob("*") if p.is_file()]:
        if file.relative_to(TREE) not in wanted:
            file.unlink()


def targets(killers):
    return [pathlib.Path(command[0]).name for command in killers]


def build(killers):
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "-S", str(TREE), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DCMAKE_CXX_COMPILER=g++", "-DWEFT_BENCH=OFF"], check=True, capture_output=True)
    return subprocess.run(["ninja", "-C", str(BUILD), *targets(killers)], capture_output=True, text=True)


def killer(killers):
    """Which test fails first; None when all pass."""
    for command in killers:
        try:
            code = subprocess.run([str(BUILD / command[0]), *command[1:]], capture_output=True, timeout=60).returncode
        except subprocess.TimeoutExpired:
            code = -1
        if code != 0:
            return pathlib.Path(command[0]).name
    return None


def main():
    chosen = [m for m in MUTANTS if not sys.argv[1:] or any(word in m[0] for word in sys.argv[1:])]
    if not chosen:
        print(f"mutants: none is called like {' '.join(sys.argv[1:])}; there are: {', '.join(m[0] for m in MUTANTS)}",
              file=sys.stderr)
        return 2
    TREE.mkdir(parents=True, exist_ok=True)
    copy_tree()
    everything = KILLERS + SIM_KILLERS
    result = build(everything)
    if result.returncode != 0:
        print(result.stdout[-4000:])
        print("mutants: the tree does not build")
        return 1
    if (failing := killer(everything)) is not None:
        print(f"mutants: {failing} fails already without a mutant")
        return 1
    survived = 0
    for name, file, there, instead in chosen:
        began = time.monotonic()
        path = TREE / file
        text = path.read_text(encoding="utf-8")
        if text.count(there) != 1:
            print(f"{name}: its text is in {file} {text.count(there)} times, not once; move the mutant along")
            survived += 1
            continue
        path.write_text(text.replace(there, instead), encoding="utf-8")
        killers = SIM_KILLERS if file.startswith("src/sim/") else KILLERS
        result = build(killers)
        by = killer(killers) if result.returncode == 0 else "the compiler"
        path.write_text(text, encoding="utf-8")
        print(f"{name:45} {'killed by ' + by if by else 'SURVIVED':35} {time.monotonic() - began:5.1f} s", flush=True)
        survived += by is None or by == "the compiler"
    print(f"mutants: {len(chosen) - survived} of {len(chosen)} killed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
