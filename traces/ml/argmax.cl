// Place of the largest value of each row (top-1).

#ifndef GROUP
#define GROUP 128
#endif

// One work-item per row.
kernel void argmax_naive(global const float *restrict input, global int *restrict places, int columns, int rows) {
  int row = get_global_id(0);
  if (row >= rows)
    return;
  float largest = input[row * columns];
  int place = 0;
  for (int c = 1; c < columns; ++c) {
    float value = input[row * columns + c];
    if (value > largest) {
      largest = value;
      place = c;
    }
  }
  places[row] = place;
}

// One work-group per row: pairs of value and place reduced in local memory; of equals the first wins.
kernel void argmax_group(global const float *restrict input, global int *restrict places, int columns) {
  local float values[GROUP];
  local int where[GROUP];
  int lane = get_local_id(0);
  int row = get_group_id(0);
  float largest = -INFINITY;
  int place = columns;
  for (int c = lane; c < columns; c += GROUP) {
    float value = input[row * columns + c];
    if (value > largest) {
      largest = value;
      place = c;
    }
  }
  values[lane] = largest;
  where[lane] = place;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width) {
      float other = values[lane + width];
      int other_place = where[lane + width];
      if (other > values[lane] || (other == values[lane] && other_place < where[lane])) {
        values[lane] = other;
        where[lane] = other_place;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0)
    places[row] = where[0];
}
