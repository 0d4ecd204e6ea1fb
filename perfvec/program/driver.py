"""The part of the executor's native code that is the same for every kernel, as LLVM IR text.

It picks which segment a sub-group runs next, hands the segment the list of lanes and writes the record;
`group_driver.py` runs one sub-group and work-group after another. Both are compiled once. All state is in memory, so
that they can return to Python whenever the record is full and be called again. What segments ask of their work-item is
compiled with each kernel.
"""

from __future__ import annotations

from enum import IntEnum

SUB_GROUP_SIZE = 32
TAG_SHIFT = 40  # an address is a memory's number shifted by this, plus the offset in it
MAX_MEMORIES = 1 << 16
# Values of a lane's program counter beyond all segments.
WAITING = 0x4000_0000  # plus the segment to go on with: waits at a barrier
EXITED = 0x7FFF_FFFF
# Segment words of the record that are not segments: a sub-group runs now, its number in the other word; a work-group
# has ended. For the last there is always room: one event more than the capacity says.
MARK_SUB_GROUP = 0xFFFF_FFFF
MARK_GROUP_END = 0xFFFF_FFFE

# The context: an array of 64-bit words that Python and the native code share.
CONTEXT = {
    name: index
    for index, name in enumerate(
        (
            "table", "args", "regs", "pcs", "private", "local_ids", "global_base", "group_ids", "num_groups",
            "global_sizes", "local_sizes", "offsets", "work_dim", "num_lanes", "num_sub_groups", "regs_bytes",
            "private_lane_bytes", "events", "events_capacity", "events_count", "addresses", "addresses_capacity",
            "addresses_count", "keeps_addresses", "budget", "segments", "costs", "sites", "segment_count",
            "segment_lanes", "scratch", "sub_group", "private_now", "lane_base", "groups", "num_run", "position",
            "is_entered", "pcs_fresh", "pcs_bytes", "local", "local_bytes", "printf", "printf_used", "printf_cut",
        )
    )
}  # fmt: skip


class Status(IntEnum):
    """What a call of the native code ended with."""

    DONE = 0
    RECORD_FULL = 1
    MEMORY_ERROR = 2
    OVER_BUDGET = 3
    BARRIER_DIVERGENCE = 4


def word(name: str) -> str:
    """Text of the address of a context word."""
    return f"getelementptr i64, ptr %.ctx, i64 {CONTEXT[name]}"


_LANES_I32 = f"<{SUB_GROUP_SIZE} x i32>"
_LANES_I8 = f"<{SUB_GROUP_SIZE} x i8>"
_COMPRESS = f"llvm.experimental.vector.compress.v{SUB_GROUP_SIZE}i8"
_EACH_LANE = f"<{', '.join(f'i8 {lane}' for lane in range(SUB_GROUP_SIZE))}>"
_LANES_I1 = f"<{SUB_GROUP_SIZE} x i1>"
# What a segment's function returns where its lanes do not all go on with the same segment, and where one of them
# touched memory that it must not.
SPLIT, FAULT = -1, -2


def _uniform_query(name: str, context_name: str) -> str:
    """A work-item function that is the same for all lanes; the arrays hold a fourth entry for dimensions past 2."""
    return f"""
define internal i64 @pv.{name}(ptr %.ctx, i32 %dim, i64 %place) alwaysinline {{
  %array.p = {word(context_name)}
  %array = load ptr, ptr %array.p, !invariant.load !0
  %dim.64 = zext i32 %dim to i64
  %dim.safe = call i64 @llvm.umin.i64(i64 %dim.64, i64 3)
  %value.p = getelementptr i64, ptr %array, i64 %dim.safe
  %value = load i64, ptr %value.p
  ret i64 %value
}}
"""


WORK_ITEM_IR = f"""
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define internal i64 @pv.get_local_id(ptr %.ctx, i32 %dim, i64 %place) alwaysinline {{
  %ids.p = {word("local_ids")}
  %ids = load ptr, ptr %ids.p, !invariant.load !0
  %lanes.p = {word("num_lanes")}
  %lanes = load i64, ptr %lanes.p, !invariant.load !0
  %dim.64 = zext i32 %dim to i64
  %dim.safe = call i64 @llvm.umin.i64(i64 %dim.64, i64 3)
  %row = mul i64 %dim.safe, %lanes
  %at = add i64 %row, %place
  %value.p = getelementptr i64, ptr %ids, i64 %at
  %value = load i64, ptr %value.p, !invariant.load !0
  ret i64 %value
}}

define internal i64 @pv.get_global_id(ptr %.ctx, i32 %dim, i64 %place) alwaysinline {{
  %local = call i64 @pv.get_local_id(ptr %.ctx, i32 %dim, i64 %place)
  %base = call i64 @pv.get_global_base(ptr %.ctx, i32 %dim, i64 %place)
  %value = add i64 %local, %base
  ret i64 %value
}}
""" + "".join(
    _uniform_query(name, context_name)
    for name, context_name in (
        ("get_global_base", "global_base"),
        ("get_group_id", "group_ids"),
        ("get_num_groups", "num_groups"),
        ("get_global_size", "global_sizes"),
        ("get_local_size", "local_sizes"),
        ("get_enqueued_local_size", "local_sizes"),
        ("get_global_offset", "offsets"),
    )
)

SUB_GROUP_IR = f"""
define internal i32 @pv.run_sub_group(ptr %.ctx, i64 %number) {{
entry:
  %lanes.idx = alloca [{SUB_GROUP_SIZE} x i8], align 32
  %regs.p = {word("regs")}
  %regs.first = load ptr, ptr %regs.p
  %regs.bytes.p = {word("regs_bytes")}
  %regs.bytes = load i64, ptr %regs.bytes.p
  %regs.skip = mul i64 %regs.bytes, %number
  %regs = getelementptr i8, ptr %regs.first, i64 %regs.skip
  %pcs.p = {word("pcs")}
  %pcs.first = load ptr, ptr %pcs.p
  %lane.base = mul i64 %number, {SUB_GROUP_SIZE}
  %pcs = getelementptr i32, ptr %pcs.first, i64 %lane.base
  %lane.base.p = {word("lane_base")}
  store i64 %lane.base, ptr %lane.base.p
  %private.p = {word("private")}
  %private = load i64, ptr %private.p
  %private.lane.p = {word("private_lane_bytes")}
  %private.lane = load i64, ptr %private.lane.p
  %private.skip = mul i64 %private.lane, %lane.base
  %private.now = add i64 %private, %private.skip
  %private.now.p = {word("private_now")}
  store i64 %private.now, ptr %private.now.p
  %events.p = {word("events")}
  %events = load ptr, ptr %events.p
  %events.capacity.p = {word("events_capacity")}
  %events.capacity = load i64, ptr %events.capacity.p
  %events.count.p = {word("events_count")}
  %addresses.p = {word("addresses")}
  %addresses = load ptr, ptr %addresses.p
  %addresses.capacity.p = {word("addresses_capacity")}
  %addresses.capacity = load i64, ptr %addresses.capacity.p
  %addresses.count.p = {word("addresses_count")}
  %budget.p = {word("budget")}
  %counts.p = {word("segment_count")}
  %counts = load ptr, ptr %counts.p
  %lane.counts.p = {word("segment_lanes")}
  %lane.counts = load ptr, ptr %lane.counts.p
  %keeps.p = {word("keeps_addresses")}
  %keeps = load i64, ptr %keeps.p
  %costs.p = {word("costs")}
  %costs = load ptr, ptr %costs.p
  %all.sites.p = {word("sites")}
  %all.sites = load ptr, ptr %all.sites.p
  %segments.p = {word("segments")}
  %segments = load ptr, ptr %segments.p
  %mark.at = load i64, ptr %events.count.p
  %mark.end = add i64 %mark.at, 1
  %mark.fits = icmp ule i64 %mark.end, %events.capacity
  br i1 %mark.fits, label %mark, label %full
mark:
  %mark.p = getelementptr {{ i32, i32 }}, ptr %events, i64 %mark.at
  store i32 {MARK_SUB_GROUP - (1 << 32)}, ptr %mark.p
  %mark.low.p = getelementptr i32, ptr %mark.p, i64 1
  %number.32 = trunc i64 %number to i32
  store i32 %number.32, ptr %mark.low.p
  store i64 %mark.end, ptr %events.count.p
  br label %pick

pick:
  %pcs.all = load {_LANES_I32}, ptr %pcs, align 4
  %lowest = call i32 @llvm.vector.reduce.umin.v{SUB_GROUP_SIZE}i32({_LANES_I32} %pcs.all)
  %is.idle = icmp uge i32 %lowest, {WAITING}
  br i1 %is.idle, label %idle, label %gather
gather:
  %lowest.one = insertelement {_LANES_I32} poison, i32 %lowest, i64 0
  %lowest.all = shufflevector {_LANES_I32} %lowest.one, {_LANES_I32} poison, {_LANES_I32} zeroinitializer
  %is.active = icmp eq {_LANES_I32} %pcs.all, %lowest.all
  %mask = bitcast {_LANES_I1} %is.active to i32
  %others = select {_LANES_I1} %is.active, {_LANES_I32} splat (i32 {EXITED}), {_LANES_I32} %pcs.all
  %next.other = call i32 @llvm.vector.reduce.umin.v{SUB_GROUP_SIZE}i32({_LANES_I32} %others)
  %active = call i32 @llvm.ctpop.i32(i32 %mask)
  %filled = zext i32 %active to i64
  %listed = call {_LANES_I8} @{_COMPRESS}(
    {_LANES_I8} {_EACH_LANE}, {_LANES_I1} %is.active, {_LANES_I8} zeroinitializer)
  store {_LANES_I8} %listed, ptr %lanes.idx
  br label %exec

exec:
  %now = phi i32 [ %lowest, %gather ], [ %next, %go.on ]
  %now.64 = zext i32 %now to i64
  %cost.p = getelementptr i32, ptr %costs, i64 %now.64
  %cost = load i32, ptr %cost.p
  %cost.64 = zext i32 %cost to i64
  %sites.p = getelementptr i32, ptr %all.sites, i64 %now.64
  %sites = load i32, ptr %sites.p
  %room = zext i32 %sites to i64
  %at = load i64, ptr %events.count.p
  %at.end = add i64 %at, 1
  %events.fit = icmp ule i64 %at.end, %events.capacity
  %addresses.at = load i64, ptr %addresses.count.p
  %addresses.end = add i64 %addresses.at, %room
  %addresses.fit = icmp ule i64 %addresses.end, %addresses.capacity
  %fits = and i1 %events.fit, %addresses.fit
  br i1 %fits, label %spend, label %keep
spend:
  %budget = load i64, ptr %budget.p
  %budget.left = sub i64 %budget, %cost.64
  store i64 %budget.left, ptr %budget.p
  %is.over = icmp slt i64 %budget.left, 0
  br i1 %is.over, label %over, label %record
record:
  %event.p = getelementptr {{ i32, i32 }}, ptr %events, i64 %at
  store i32 %now, ptr %event.p
  %event.mask.p = getelementptr i32, ptr %event.p, i64 1
  store i32 %mask, ptr %event.mask.p
  store i64 %at.end, ptr %events.count.p
  %addresses.kept = and i64 %addresses.end, %keeps
  store i64 %addresses.kept, ptr %addresses.count.p
  %count.p = getelementptr i64, ptr %counts, i64 %now.64
  %count.old = load i64, ptr %count.p
  %count.new = add i64 %count.old, 1
  store i64 %count.new, ptr %count.p
  %lane.count.p = getelementptr i64, ptr %lane.counts, i64 %now.64
  %lane.count.old = load i64, ptr %lane.count.p
  %lane.count.new = add i64 %lane.count.old, %filled
  store i64 %lane.count.new, ptr %lane.count.p
  %row = getelementptr [{SUB_GROUP_SIZE} x i64], ptr %addresses, i64 %addresses.at
  %function.p = getelementptr ptr, ptr %segments, i64 %now.64
  %function = load ptr, ptr %function.p
  %next = call i32 %function(ptr %.ctx, ptr %regs, ptr %pcs, ptr %lanes.idx, i64 %filled, ptr %row)
  %is.error = icmp eq i32 %next, {FAULT}
  br i1 %is.error, label %failed, label %follow
follow:
  %is.split = icmp eq i32 %next, {SPLIT}
  br i1 %is.split, label %pick, label %together
together:
  %is.first = icmp ult i32 %next, %next.other
  %is.segment = icmp ult i32 %next, {WAITING}
  %goes.on = and i1 %is.first, %is.segment
  br i1 %goes.on, label %go.on, label %put
go.on:
  br label %exec
keep:
  br label %put
put:
  %put.value = phi i32 [ %next, %together ], [ %now, %keep ]
  %put.full = phi i1 [ false, %together ], [ true, %keep ]
  %put.one = insertelement {_LANES_I32} poison, i32 %put.value, i64 0
  %put.all = shufflevector {_LANES_I32} %put.one, {_LANES_I32} poison, {_LANES_I32} zeroinitializer
  %put.pcs = select {_LANES_I1} %is.active, {_LANES_I32} %put.all, {_LANES_I32} %pcs.all
  store {_LANES_I32} %put.pcs, ptr %pcs, align 4
  br i1 %put.full, label %full, label %pick
idle:
  ret i32 {Status.DONE}
full:
  ret i32 {Status.RECORD_FULL}
failed:
  ret i32 {Status.MEMORY_ERROR}
over:
  ret i32 {Status.OVER_BUDGET}
}}

declare i32 @llvm.vector.reduce.umin.v{SUB_GROUP_SIZE}i32({_LANES_I32})
declare i32 @llvm.ctpop.i32(i32)
declare {_LANES_I8} @{_COMPRESS}({_LANES_I8}, {_LANES_I1}, {_LANES_I8})
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""

FINAL_METADATA = "\n!0 = !{}\n"
