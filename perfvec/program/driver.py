"""The part of the executor's native code that is the same for every kernel, as LLVM IR text.

It picks which segment a sub-group runs next, hands the segment the list of lanes, writes the record, checks every
address, and moves between the sub-groups of a work-group at barriers. All state is in memory, so that it can return
to Python whenever the record is full and be called again.
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
            "is_entered", "pcs_fresh", "pcs_bytes", "local", "local_bytes",
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
  %is.partial = icmp ne i64 %filled.next, {SUB_GROUP_SIZE}
  %has.sites = icmp ne i32 %sites, 0
  %must.clear = and i1 %is.partial, %has.sites
  br i1 %must.clear, label %clear, label %call
clear:
  %clear.bytes = mul i64 %room, {SUB_GROUP_SIZE * 8}
  call void @llvm.memset.p0.i64(ptr %row, i8 -1, i64 %clear.bytes, i1 false)
  br label %call
call:
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

_GROUP = f"""
define internal i32 @pv.run_group(ptr %.ctx) {{
entry:
  %sub.p = {word("sub_group")}
  %num.p = {word("num_sub_groups")}
  %num = load i64, ptr %num.p
  %lanes.p = {word("num_lanes")}
  %lanes = load i64, ptr %lanes.p
  %pcs.p = {word("pcs")}
  %pcs = load ptr, ptr %pcs.p
  br label %round
round:
  %sub = load i64, ptr %sub.p
  %is.last = icmp uge i64 %sub, %num
  br i1 %is.last, label %meet, label %run
run:
  %status = call i32 @pv.run_sub_group(ptr %.ctx, i64 %sub)
  %is.ok = icmp eq i32 %status, {Status.DONE}
  br i1 %is.ok, label %step, label %leave
step:
  %sub.next = add i64 %sub, 1
  store i64 %sub.next, ptr %sub.p
  br label %round
leave:
  ret i32 %status

meet:
  %first = load i32, ptr %pcs
  br label %look
look:
  %i = phi i64 [ 0, %meet ], [ %i.next, %look ]
  %differs = phi i1 [ false, %meet ], [ %differs.next, %look ]
  %pc.p = getelementptr i32, ptr %pcs, i64 %i
  %pc = load i32, ptr %pc.p
  %pc.differs = icmp ne i32 %pc, %first
  %differs.next = or i1 %differs, %pc.differs
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %lanes
  br i1 %i.more, label %look, label %judge
judge:
  br i1 %differs.next, label %diverged, label %agree
diverged:
  ret i32 {Status.BARRIER_DIVERGENCE}
agree:
  %is.exit = icmp eq i32 %first, {EXITED}
  br i1 %is.exit, label %done, label %release
done:
  ret i32 {Status.DONE}
release:
  %j = phi i64 [ 0, %agree ], [ %j.next, %release ]
  %free.p = getelementptr i32, ptr %pcs, i64 %j
  %free.old = load i32, ptr %free.p
  %free.new = sub i32 %free.old, {WAITING}
  store i32 %free.new, ptr %free.p
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %lanes
  br i1 %j.more, label %release, label %released
released:
  store i64 0, ptr %sub.p
  br label %round
}}
"""


def _place(dimension: int) -> str:
    """Store a work-group's number in one dimension, and the global id of its first work-item."""
    return f"""
  %id.p.{dimension} = getelementptr i64, ptr %ids, i64 {dimension}
  store i64 %id.{dimension}, ptr %id.p.{dimension}
  %size.p.{dimension} = getelementptr i64, ptr %sizes, i64 {dimension}
  %size.{dimension} = load i64, ptr %size.p.{dimension}
  %offset.p.{dimension} = getelementptr i64, ptr %offsets, i64 {dimension}
  %offset.{dimension} = load i64, ptr %offset.p.{dimension}
  %skip.{dimension} = mul i64 %id.{dimension}, %size.{dimension}
  %first.{dimension} = add i64 %skip.{dimension}, %offset.{dimension}
  %base.p.{dimension} = getelementptr i64, ptr %bases, i64 {dimension}
  store i64 %first.{dimension}, ptr %base.p.{dimension}"""


_LAUNCH = f"""
define internal void @pv.enter_group(ptr %.ctx, i64 %group) {{
  %shape.p = {word("num_groups")}
  %shape = load ptr, ptr %shape.p
  %x = load i64, ptr %shape
  %y.p = getelementptr i64, ptr %shape, i64 1
  %y = load i64, ptr %y.p
  %id.0 = urem i64 %group, %x
  %rest = udiv i64 %group, %x
  %id.1 = urem i64 %rest, %y
  %id.2 = udiv i64 %rest, %y
  %ids.p = {word("group_ids")}
  %ids = load ptr, ptr %ids.p
  %sizes.p = {word("local_sizes")}
  %sizes = load ptr, ptr %sizes.p
  %offsets.p = {word("offsets")}
  %offsets = load ptr, ptr %offsets.p
  %bases.p = {word("global_base")}
  %bases = load ptr, ptr %bases.p
  {_place(0)}{_place(1)}{_place(2)}
  %pcs.p = {word("pcs")}
  %pcs = load ptr, ptr %pcs.p
  %fresh.p = {word("pcs_fresh")}
  %fresh = load ptr, ptr %fresh.p
  %pcs.bytes.p = {word("pcs_bytes")}
  %pcs.bytes = load i64, ptr %pcs.bytes.p
  call void @llvm.memmove.p0.p0.i64(ptr %pcs, ptr %fresh, i64 %pcs.bytes, i1 false)
  %local.p = {word("local")}
  %local = load ptr, ptr %local.p
  %local.bytes.p = {word("local_bytes")}
  %local.bytes = load i64, ptr %local.bytes.p
  call void @llvm.memset.p0.i64(ptr %local, i8 0, i64 %local.bytes, i1 false)
  %sub.p = {word("sub_group")}
  store i64 0, ptr %sub.p
  ret void
}}

define i32 @pv.run_groups(ptr %.ctx) {{
entry:
  %groups.p = {word("groups")}
  %groups = load ptr, ptr %groups.p
  %num.p = {word("num_run")}
  %num = load i64, ptr %num.p
  %position.p = {word("position")}
  %entered.p = {word("is_entered")}
  %events.p = {word("events")}
  %events = load ptr, ptr %events.p
  %count.p = {word("events_count")}
  br label %next
next:
  %position = load i64, ptr %position.p
  %is.end = icmp uge i64 %position, %num
  br i1 %is.end, label %done, label %look
look:
  %entered = load i64, ptr %entered.p
  %is.entered = icmp ne i64 %entered, 0
  br i1 %is.entered, label %run, label %enter
enter:
  %group.p = getelementptr i64, ptr %groups, i64 %position
  %group = load i64, ptr %group.p
  call void @pv.enter_group(ptr %.ctx, i64 %group)
  store i64 1, ptr %entered.p
  br label %run
run:
  %status = call i32 @pv.run_group(ptr %.ctx)
  %is.ok = icmp eq i32 %status, {Status.DONE}
  br i1 %is.ok, label %finish, label %leave
leave:
  ret i32 %status
finish:
  %at = load i64, ptr %count.p
  %mark.p = getelementptr {{ i32, i32 }}, ptr %events, i64 %at
  store i32 {MARK_GROUP_END - (1 << 32)}, ptr %mark.p
  %at.end = add i64 %at, 1
  store i64 %at.end, ptr %count.p
  store i64 0, ptr %entered.p
  %position.next = add i64 %position, 1
  store i64 %position.next, ptr %position.p
  br label %next
done:
  ret i32 {Status.DONE}
}}
"""

DRIVER_IR = _MEMORY + _WORK_ITEM + _SUB_GROUP + _GROUP + _LAUNCH
FINAL_METADATA = '\n!0 = !{}\n!1 = !{!"branch_weights", i32 1048576, i32 1}\n'
