// Median filters of an 8-bit image.

#ifndef RADIUS
#define RADIUS 1
#endif

#define SIDE (2 * RADIUS + 1)

// Order two values of any type that min and max accept.
#define ORDER(a, b) \
  low = min(a, b);  \
  b = max(a, b);    \
  a = low

// Exchanges that leave the median of nine values in v4.
#define MEDIAN_OF_NINE                                \
  ORDER(v1, v2); ORDER(v4, v5); ORDER(v7, v8);        \
  ORDER(v0, v1); ORDER(v3, v4); ORDER(v6, v7);        \
  ORDER(v1, v2); ORDER(v4, v5); ORDER(v7, v8);        \
  ORDER(v0, v3); ORDER(v5, v8); ORDER(v4, v7);        \
  ORDER(v3, v6); ORDER(v1, v4); ORDER(v2, v5);        \
  ORDER(v4, v7); ORDER(v4, v2); ORDER(v6, v4);        \
  ORDER(v4, v2)

// 3 x 3 median by a sorting network, one pixel per work-item.
kernel void median_network(global const uchar *restrict input, global uchar *restrict output, int width, int height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  int left = max(x - 1, 0);
  int right = min(x + 1, width - 1);
  global const uchar *above = input + max(y - 1, 0) * width;
  global const uchar *here = input + y * width;
  global const uchar *below = input + min(y + 1, height - 1) * width;
  int v0 = above[left], v1 = above[x], v2 = above[right];
  int v3 = here[left], v4 = here[x], v5 = here[right];
  int v6 = below[left], v7 = below[x], v8 = below[right];
  int low;
  MEDIAN_OF_NINE;
  output[y * width + x] = (uchar)v4;
}

// The same network on four pixels at once; the input has a border of one pixel.
kernel void median_vector(global const uchar *restrict padded, global uchar *restrict output, int width, int height) {
  int block = get_global_id(0);
  int y = get_global_id(1);
  if (block * 4 >= width || y >= height)
    return;
  int pitch = width + 2;
  global const uchar *above = padded + y * pitch + block * 4;
  global const uchar *here = above + pitch;
  global const uchar *below = here + pitch;
  uchar4 v0 = vload4(0, above), v1 = vload4(0, above + 1), v2 = vload4(0, above + 2);
  uchar4 v3 = vload4(0, here), v4 = vload4(0, here + 1), v5 = vload4(0, here + 2);
  uchar4 v6 = vload4(0, below), v7 = vload4(0, below + 1), v8 = vload4(0, below + 2);
  uchar4 low;
  MEDIAN_OF_NINE;
  vstore4(v4, 0, output + y * width + block * 4);
}

// Median of any window: eight halvings of the value range, each counting the window again.
kernel void median_bisect(global const uchar *restrict input, global uchar *restrict output, int width, int height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  int low = 0;
  int high = 255;
  while (low < high) {
    int middle = (low + high) / 2;
    int count = 0;
    for (int j = -RADIUS; j <= RADIUS; ++j) {
      global const uchar *row = input + clamp(y + j, 0, height - 1) * width;
      for (int i = -RADIUS; i <= RADIUS; ++i)
        count += row[clamp(x + i, 0, width - 1)] <= middle;
    }
    if (count > SIDE * SIDE / 2)
      high = middle;
    else
      low = middle + 1;
  }
  output[y * width + x] = (uchar)low;
}
