"""The part of the executor's native code that is the same for every kernel, as LLVM IR text.

It picks which segment a sub-group runs next, hands the segment the list of lanes, writes the record and checks every
address; `group_driver.py` runs one sub-group and work-group after another. All state is in memory, so that it can
return to Python whenever the record is full and be called again.
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
            "addresses_count", "budget", "segment_count", "segment_lanes", "scratch", "sub_group", "error_site",
            "error_address", "error_lane", "error_bytes", "private_now", "lane_base", "groups", "num_run", "position",
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


# The memories that may be meant are those numbered from %first on, %many of them.
_AT_PARAMETERS = "ptr %.ctx, i64 %address, i64 %bytes, i64 %low.mask, i64 %lane, i64 %site, i64 %first, i64 %many"
_LANES_I32 = f"<{SUB_GROUP_SIZE} x i32>"
_LANES_I1 = f"<{SUB_GROUP_SIZE} x i1>"

_MEMORY = f"""
define internal void @pv.fault(ptr %.ctx, i64 %address, i64 %bytes, i64 %lane, i64 %site) noinline cold {{
  %site.p = {word("error_site")}
  %old = load i64, ptr %site.p
  %is.first = icmp slt i64 %old, 0
  br i1 %is.first, label %note, label %done
note:
  store i64 %site, ptr %site.p
  %address.p = {word("error_address")}
  store i64 %address, ptr %address.p
  %lane.p = {word("error_lane")}
  store i64 %lane, ptr %lane.p
  %bytes.p = {word("error_bytes")}
  store i64 %bytes, ptr %bytes.p
  br label %done
done:
  ret void
}}

define internal ptr @pv.at({_AT_PARAMETERS}) alwaysinline {{
  %table.p = {word("table")}
  %table = load ptr, ptr %table.p, !invariant.load !0
  %tag = lshr i64 %address, {TAG_SHIFT}
  %offset = and i64 %address, {(1 << TAG_SHIFT) - 1}
  %rank = sub i64 %tag, %first
  %is.of.space = icmp ult i64 %rank, %many
  %number = and i64 %tag, {MAX_MEMORIES - 1}
  %limit.p = getelementptr {{ i64, i64 }}, ptr %table, i64 %number
  %limit = load i64, ptr %limit.p, !invariant.load !0
  %end = add i64 %offset, %bytes
  %is.inside = icmp ule i64 %end, %limit
  %low = and i64 %offset, %low.mask
  %is.aligned = icmp eq i64 %low, 0
  %is.near = and i1 %is.inside, %is.aligned
  %is.good = and i1 %is.near, %is.of.space
  br i1 %is.good, label %good, label %bad, !prof !1
bad:
  call void @pv.fault(ptr %.ctx, i64 %address, i64 %bytes, i64 %lane, i64 %site)
  %scratch.p = {word("scratch")}
  %scratch = load ptr, ptr %scratch.p
  ret ptr %scratch
good:
  %base.p = getelementptr i64, ptr %limit.p, i64 1
  %base = load i64, ptr %base.p, !invariant.load !0
  %real = add i64 %base, %offset
  %result = inttoptr i64 %real to ptr
  ret ptr %result
}}

define internal ptr @pv.at.private({_AT_PARAMETERS}) alwaysinline {{
  %start = call ptr @pv.at({_AT_PARAMETERS})
  %scratch.p = {word("scratch")}
  %scratch = load ptr, ptr %scratch.p, !invariant.load !0
  %is.bad = icmp eq ptr %start, %scratch
  %stride.p = {word("private_lane_bytes")}
  %stride = load i64, ptr %stride.p, !invariant.load !0
  %now.p = {word("private_now")}
  %now = load i64, ptr %now.p
  %skip = mul i64 %lane, %stride
  %shift = add i64 %skip, %now
  %shift.good = select i1 %is.bad, i64 0, i64 %shift
  %result = getelementptr i8, ptr %start, i64 %shift.good
  ret ptr %result
}}
"""


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


_WORK_ITEM = f"""
declare i64 @llvm.umin.i64(i64, i64)

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

_SUB_GROUP = f"""
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
  %error.p = {word("error_site")}
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
  br label %list
list:
  %bits = phi i32 [ %mask, %gather ], [ %bits.rest, %list ]
  %filled = phi i64 [ 0, %gather ], [ %filled.next, %list ]
  %bit = call i32 @llvm.cttz.i32(i32 %bits, i1 true)
  %bit.8 = trunc i32 %bit to i8
  %slot = getelementptr i8, ptr %lanes.idx, i64 %filled
  store i8 %bit.8, ptr %slot
  %bits.less = sub i32 %bits, 1
  %bits.rest = and i32 %bits, %bits.less
  %filled.next = add i64 %filled, 1
  %is.listed = icmp eq i32 %bits.rest, 0
  br i1 %is.listed, label %exec, label %list

exec:
  %now = phi i32 [ %lowest, %list ], [ %next, %go.on ]
  %now.64 = zext i32 %now to i64
  %cost.p = getelementptr i32, ptr @pv.costs, i64 %now.64
  %cost = load i32, ptr %cost.p
  %cost.64 = zext i32 %cost to i64
  %sites.p = getelementptr i32, ptr @pv.sites, i64 %now.64
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
  store i64 %addresses.end, ptr %addresses.count.p
  %count.p = getelementptr i64, ptr %counts, i64 %now.64
  %count.old = load i64, ptr %count.p
  %count.new = add i64 %count.old, 1
  store i64 %count.new, ptr %count.p
  %lane.count.p = getelementptr i64, ptr %lane.counts, i64 %now.64
  %lane.count.old = load i64, ptr %lane.count.p
  %lane.count.new = add i64 %lane.count.old, %filled.next
  store i64 %lane.count.new, ptr %lane.count.p
  %row = getelementptr [{SUB_GROUP_SIZE} x i64], ptr %addresses, i64 %addresses.at
  %function.p = getelementptr ptr, ptr @pv.segments, i64 %now.64
  %function = load ptr, ptr %function.p
  %next = call i32 %function(ptr %.ctx, ptr %regs, ptr %pcs, ptr %lanes.idx, i64 %filled.next, ptr %row)
  %error = load i64, ptr %error.p
  %is.error = icmp sge i64 %error, 0
  br i1 %is.error, label %failed, label %follow
follow:
  %is.split = icmp eq i32 %next, -1
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
  br label %put.loop
put.loop:
  %k = phi i64 [ 0, %put ], [ %k.next, %put.loop ]
  %k.p = getelementptr i8, ptr %lanes.idx, i64 %k
  %k.lane = load i8, ptr %k.p
  %k.lane.64 = zext i8 %k.lane to i64
  %k.pc = getelementptr i32, ptr %pcs, i64 %k.lane.64
  store i32 %put.value, ptr %k.pc
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %filled.next
  br i1 %k.more, label %put.loop, label %put.end
put.end:
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
declare i32 @llvm.cttz.i32(i32, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""

DRIVER_IR = _MEMORY + _WORK_ITEM + _SUB_GROUP
FINAL_METADATA = '\n!0 = !{}\n!1 = !{!"branch_weights", i32 1048576, i32 1}\n'
