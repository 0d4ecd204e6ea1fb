// Conversions between colour spaces.

// Packed 3-byte RGB to grey in whole numbers; one pixel per work-item.
kernel void rgb_to_grey(global const uchar *restrict rgb, global uchar *restrict grey, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint red = rgb[3 * i];
  uint green = rgb[3 * i + 1];
  uint blue = rgb[3 * i + 2];
  grey[i] = (uchar)((77u * red + 150u * green + 29u * blue + 128u) >> 8);
}

// RGBA to grey, four pixels per work-item by wide reads.
kernel void rgba_to_grey_vector(global const uchar16 *restrict rgba, global uchar4 *restrict grey, int num_quads) {
  int i = get_global_id(0);
  if (i >= num_quads)
    return;
  uchar16 p = rgba[i];
  uint4 red = convert_uint4(p.s048c);
  uint4 green = convert_uint4(p.s159d);
  uint4 blue = convert_uint4(p.s26ae);
  grey[i] = convert_uchar4((77u * red + 150u * green + 29u * blue + 128u) >> 8);
}

// RGBA to three planes Y, U, V in floating point.
kernel void rgba_to_yuv_planes(global const uchar4 *restrict rgba, global uchar *restrict luma,
                               global uchar *restrict blue_chroma, global uchar *restrict red_chroma, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float4 p = convert_float4(rgba[i]);
  float y = 0.299f * p.x + 0.587f * p.y + 0.114f * p.z;
  luma[i] = convert_uchar_sat(y + 0.5f);
  blue_chroma[i] = convert_uchar_sat(0.564f * (p.z - y) + 128.5f);
  red_chroma[i] = convert_uchar_sat(0.713f * (p.x - y) + 128.5f);
}

// Float RGB to hue, saturation, value: neighbouring pixels take different branches.
kernel void rgb_to_hsv(global const float4 *restrict rgb, global float4 *restrict hsv, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float4 p = rgb[i];
  float value = fmax(p.x, fmax(p.y, p.z));
  float chroma = value - fmin(p.x, fmin(p.y, p.z));
  float hue = 0.0f;
  if (chroma > 0.0f) {
    if (value == p.x)
      hue = (p.y - p.z) / chroma;
    else if (value == p.y)
      hue = 2.0f + (p.z - p.x) / chroma;
    else
      hue = 4.0f + (p.x - p.y) / chroma;
    if (hue < 0.0f)
      hue += 6.0f;
  }
  hsv[i] = (float4)(hue * 60.0f, value > 0.0f ? chroma / value : 0.0f, value, p.w);
}
