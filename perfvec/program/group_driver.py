"""The part of the executor's native code that runs work-groups, as LLVM IR text.

It moves between the sub-groups of a work-group at barriers, and enters one work-group after another.
"""

from __future__ import annotations

from perfvec.program.driver import EXITED, MARK_GROUP_END, SUB_GROUP_IR, WAITING, Status, word

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

DRIVER_IR = SUB_GROUP_IR + _GROUP + _LAUNCH
